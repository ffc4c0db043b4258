# Completion of logdirctl and logdird for bash 4.4 or later, made by python -m tests.generated: change what it is made from, not this file.
# Install it as logdirctl, and once more as logdird, in the directory of completions (bash-completion finds it there by
# the name of the command), or read it in by hand: . logdirctl.bash

_logdird_paths() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

_logdird_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_logdird_list() {
    local before=
    [[ $1 == *,* ]] && before=${1%,*},
    compopt -o nospace 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -d -P "$before" -- "${1##*,}")
}

_logdirctl() {
    local command=${1##*/} current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local below= options= overrides= files= dirs= lists= nothing= takes= word i
    COMPREPLY=()
    # bash takes --option=value apart at the equals sign.
    if [[ $current == '=' ]]; then
        current=
    elif [[ $before == '=' ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case "$command $word" in
        'logdirctl status' | \
        'logdirctl disk' | \
        'logdirctl disk release' | \
        'logdirctl inventory' | \
        'logdirctl init' | \
        'logdirctl reconcile' | \
        'logdirctl stage' | \
        'logdirctl capture' | \
        'logdirctl staged' | \
        'logdirctl staged ls' | \
        'logdirctl staged restore' | \
        'logdirctl staged adopt' | \
        'logdirctl staged hold' | \
        'logdirctl staged export' | \
        'logdirctl staged purge' | \
        'logdirctl layout' | \
        'logdirctl layout check' | \
        'logdirctl layout apply' | \
        'logdirctl layout verify' | \
        'logdirctl layout rollback' | \
        'logdirctl layout finalize' | \
        'logdirctl layout status' | \
        'logdirctl handover' | \
        'logdirctl uninstall' | \
        'logdirctl describe' | \
        'logdirctl strays' | \
        'logdirctl metadata' | \
        'logdirctl metadata ls' | \
        'logdirctl metadata cat' | \
        'logdirctl metadata find' | \
        'logdirctl metadata shell' | \
        'logdirctl metadata dump' | \
        'logdirctl fleet' | \
        'logdirctl fleet scan' | \
        'logdirctl fleet plan' | \
        'logdirctl fleet report' | \
        'logdirctl bug-report' | \
        'logdirctl explain')
            command="$command $word"
            ;;
        esac
    done
    case $command in
    'logdirctl')
        below='status disk inventory init reconcile stage capture staged layout handover uninstall describe strays metadata fleet bug-report explain'
        options='--help --version'
        ;;
    'logdirctl status')
        options='--help --config --socket --watch --html --json'
        files='--config --socket --html'
        ;;
    'logdirctl disk')
        below='release'
        options='--help'
        ;;
    'logdirctl disk release')
        options='--help --config --socket --apply --json'
        files='--config --socket'
        takes=dirs
        ;;
    'logdirctl inventory')
        options='--help --server-properties --log-dirs --config --disk-timeout --output --exact --json'
        files='--server-properties --config'
        dirs='-o --output'
        lists='--log-dirs'
        nothing='--disk-timeout'
        ;;
    'logdirctl init')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json --work-root --systemd --unit --root'
        overrides='--even-if-stale-disk --even-on-unsupported-fs --even-if-found'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk --root'
        lists='--log-dirs'
        nothing='--disk-timeout --unit'
        ;;
    'logdirctl reconcile')
        options='--help --from --high-watermark --leader-epoch --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json --delay --delay-ms --protect --internal --max-staged-percent --max-age --max-age-ms'
        overrides='--even-if-stale-disk --even-over-limit --even-if-older-metadata'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk'
        lists='--log-dirs'
        nothing='--from --high-watermark --leader-epoch --disk-timeout --delay --delay-ms --protect --max-staged-percent --max-age --max-age-ms'
        ;;
    'logdirctl stage')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json --delay --delay-ms --hold --protect --internal --from --high-watermark --leader-epoch'
        overrides='--even-if-stale-disk --even-if-last --even-if-unknown --even-over-limit'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk'
        lists='--log-dirs'
        nothing='--disk-timeout --delay --delay-ms --protect --from --high-watermark --leader-epoch'
        ;;
    'logdirctl capture')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json --delay --delay-ms --hold'
        overrides='--even-if-stale-disk'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk'
        lists='--log-dirs'
        nothing='--disk-timeout --delay --delay-ms'
        ;;
    'logdirctl staged')
        below='ls restore adopt hold export purge'
        options='--help'
        ;;
    'logdirctl staged ls')
        options='--help --server-properties --log-dirs --config --disk-timeout --json --from --high-watermark --leader-epoch'
        files='--server-properties --config'
        lists='--log-dirs'
        nothing='--disk-timeout --from --high-watermark --leader-epoch'
        ;;
    'logdirctl staged restore')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json --disk --name --from --high-watermark --leader-epoch'
        overrides='--even-if-stale-disk --even-if-unknown'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk --disk'
        lists='--log-dirs'
        nothing='--disk-timeout --name --from --high-watermark --leader-epoch'
        ;;
    'logdirctl staged adopt')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json --disk --name --from --high-watermark --leader-epoch --as --with --keep --delay --delay-ms'
        overrides='--even-if-stale-disk --even-if-unknown'
        files='--server-properties --config --with'
        dirs='--skip-log-dir --even-if-stale-disk --disk'
        lists='--log-dirs'
        nothing='--disk-timeout --name --from --high-watermark --leader-epoch --as --delay --delay-ms'
        ;;
    'logdirctl staged hold')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json --disk --name'
        overrides='--even-if-stale-disk'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk --disk'
        lists='--log-dirs'
        nothing='--disk-timeout --name'
        ;;
    'logdirctl staged export')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json --disk --name --output'
        overrides='--even-if-stale-disk'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk --disk -o --output'
        lists='--log-dirs'
        nothing='--disk-timeout --name'
        ;;
    'logdirctl staged purge')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json --disk --name --from --high-watermark --leader-epoch --topic-removed --include-held --bytes-per-second'
        overrides='--even-if-stale-disk --even-if-assigned --even-if-last --even-if-early'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk --disk'
        lists='--log-dirs'
        nothing='--disk-timeout --name --from --high-watermark --leader-epoch --bytes-per-second'
        ;;
    'logdirctl layout')
        below='check apply verify rollback finalize status'
        options='--help'
        ;;
    'logdirctl layout check')
        options='--help --server-properties --log-dirs --config --disk-timeout --json'
        overrides='--even-if-found'
        files='--server-properties --config'
        lists='--log-dirs'
        nothing='--disk-timeout'
        takes=files
        ;;
    'logdirctl layout apply')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json'
        overrides='--even-if-stale-disk --even-if-found'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk'
        lists='--log-dirs'
        nothing='--disk-timeout'
        takes=files
        ;;
    'logdirctl layout verify')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json'
        overrides='--even-if-stale-disk'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk'
        lists='--log-dirs'
        nothing='--disk-timeout'
        takes=files
        ;;
    'logdirctl layout rollback')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json'
        overrides='--even-if-stale-disk --even-if-found'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk'
        lists='--log-dirs'
        nothing='--disk-timeout'
        ;;
    'logdirctl layout finalize')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json --for-broker'
        overrides='--even-if-stale-disk'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk'
        lists='--log-dirs'
        nothing='--disk-timeout --for-broker'
        ;;
    'logdirctl layout status')
        options='--help --server-properties --log-dirs --config --disk-timeout --json'
        files='--server-properties --config'
        lists='--log-dirs'
        nothing='--disk-timeout'
        ;;
    'logdirctl handover')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --log-starts --recover-only --at-most --plan --quiet --json'
        files='--server-properties --config'
        dirs='--skip-log-dir'
        lists='--log-dirs'
        nothing='--disk-timeout --at-most'
        ;;
    'logdirctl uninstall')
        options='--help --server-properties --log-dirs --config --disk-timeout --skip-log-dir --apply --json --restore --from --high-watermark --leader-epoch'
        overrides='--even-if-stale-disk --even-if-unknown'
        files='--server-properties --config'
        dirs='--skip-log-dir --even-if-stale-disk'
        lists='--log-dirs'
        nothing='--disk-timeout --from --high-watermark --leader-epoch'
        ;;
    'logdirctl describe')
        options='--help --server-properties --log-dirs --config --disk-timeout --disk --from --high-watermark --leader-epoch --kafka-json --kafka-topics --json'
        files='--server-properties --config'
        dirs='--disk'
        lists='--log-dirs'
        nothing='--disk-timeout --from --high-watermark --leader-epoch'
        ;;
    'logdirctl strays')
        options='--help --server-properties --log-dirs --config --disk-timeout --from --high-watermark --leader-epoch --protect --internal --json'
        files='--server-properties --config'
        lists='--log-dirs'
        nothing='--disk-timeout --from --high-watermark --leader-epoch --protect'
        ;;
    'logdirctl metadata')
        below='ls cat find shell dump'
        options='--help'
        ;;
    'logdirctl metadata ls')
        options='--help --json --server-properties --log-dirs --directory --disk-timeout --snapshot'
        files='--server-properties --snapshot'
        dirs='--directory'
        lists='--log-dirs'
        nothing='--disk-timeout'
        ;;
    'logdirctl metadata cat')
        options='--help --json --server-properties --log-dirs --directory --disk-timeout --snapshot'
        files='--server-properties --snapshot'
        dirs='--directory'
        lists='--log-dirs'
        nothing='--disk-timeout'
        ;;
    'logdirctl metadata find')
        options='--help --json --server-properties --log-dirs --directory --disk-timeout --snapshot'
        files='--server-properties --snapshot'
        dirs='--directory'
        lists='--log-dirs'
        nothing='--disk-timeout'
        ;;
    'logdirctl metadata shell')
        options='--help --json --server-properties --log-dirs --directory --disk-timeout --snapshot'
        files='--server-properties --snapshot'
        dirs='--directory'
        lists='--log-dirs'
        nothing='--disk-timeout'
        ;;
    'logdirctl metadata dump')
        options='--help --json --server-properties --log-dirs --directory --disk-timeout --skip-record-metadata --stock'
        files='--server-properties'
        dirs='--directory'
        lists='--log-dirs'
        nothing='--disk-timeout --stock'
        takes=files
        ;;
    'logdirctl fleet')
        below='scan plan report'
        options='--help'
        ;;
    'logdirctl fleet scan')
        options='--help --output --json --master --shared-paths'
        dirs='-o --output'
        nothing='--master'
        takes=files
        ;;
    'logdirctl fleet plan')
        options='--help --output --ids --json --master --shared-paths'
        dirs='-o --output --ids'
        nothing='--master'
        takes=files
        ;;
    'logdirctl fleet report')
        options='--help --output --json'
        files='-o --output'
        takes=dirs
        ;;
    'logdirctl bug-report')
        options='--help --server-properties --log-dirs --config --disk-timeout --output --json'
        files='--server-properties --config -o --output'
        lists='--log-dirs'
        nothing='--disk-timeout'
        ;;
    'logdirctl explain')
        options='--help --json'
        ;;
    'logdird')
        options='--help --config --check-config --version'
        files='--config'
        ;;
    *) return ;;
    esac
    case "$command $before" in
    'logdirctl init --work-root') _logdird_words 'auto inside beside in-place' "$current"; return ;;
    'logdirctl init --even-if-found') _logdird_words 'work-root-inside' "$current"; return ;;
    'logdirctl layout check --even-if-found') _logdird_words 'layout-file-missing' "$current"; return ;;
    'logdirctl layout apply --even-if-found') _logdird_words 'layout-file-missing' "$current"; return ;;
    'logdirctl layout rollback --even-if-found') _logdird_words 'layout-file-missing' "$current"; return ;;
    'logdirctl handover --log-starts') _logdird_words 'restore accept' "$current"; return ;;
    esac
    if [[ $before == -* ]]; then
        case " $files " in *" $before "*) _logdird_paths -f "$current"; return ;; esac
        case " $dirs " in *" $before "*) _logdird_paths -d "$current"; return ;; esac
        case " $lists " in *" $before "*) _logdird_list "$current"; return ;; esac
        case " $nothing " in *" $before "*) return ;; esac
    fi
    if [[ $current == --ev* ]]; then
        _logdird_words "$overrides" "$current"
    elif [[ $current == -* ]]; then
        _logdird_words "$options" "$current"
    elif [[ -n $below ]]; then
        _logdird_words "$below" "$current"
    elif [[ $takes == files ]]; then
        _logdird_paths -f "$current"
    elif [[ $takes == dirs ]]; then
        _logdird_paths -d "$current"
    fi
}

complete -F _logdirctl logdirctl logdird
