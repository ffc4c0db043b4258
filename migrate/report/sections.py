"""The sections of the report that say what to do: the verdict, the waves, the conflicts, what could be reclaimed.

Every function takes the model and returns HTML; text that comes from a disk is escaped by ``logdir.markup.text``.

Not here: the sections on bytes (``report.tables``), the page around them (``report.page``).

Spec: design §7.4, §7.5, §7.7.
"""

from __future__ import annotations

from logdir.markup import KIND_WORDS, bar, grouped, plural, ranges, sentence, text
from migrate.report.conflicts import Conflict, ConflictRow
from migrate.report.figure import duration_at, number, size_at, span
from migrate.report.model import RECLAIMABLE, Model
from migrate.report.next_steps import NO_BROKER, Advice, above_bound, next_commands, trial, trial_title
from migrate.report.plan import DISK_COLUMNS
from migrate.report.words import SLUG_WORDS

_WAVES_OPEN = 40
"""Clusters with more waves than this are shown folded."""
_HOLDERS_OPEN = 12
_UNREAD_SHOWN = 5
_RECLAIM_HOW = {
    "delete": "The broker removes them within a minute of its next start.",
    "stray": "The command <code>strays</code> on the broker lists which are proven.",
    "future": "The broker finishes or removes them once it runs.",
    "staged": "The command <code>staged ls</code> on the broker lists them and their deadlines.",
}


def verdict(model: Model) -> str:
    """Return the head of the page: one sentence, the brokers by readiness, the figures, the next command."""
    summary, totals = model["summary"], model["totals"]
    brokers = summary["brokers"]
    clean, blocked, unknown = (brokers[key] for key in ("clean", "blocked", "unknown"))
    every = clean + blocked + unknown
    count = number(clean, "/summary/brokers/clean")
    if every and clean == every:
        head = f"All {count} {plural(every, 'broker')} are clean" if every > 1 else "The broker is clean"
        if not totals["steps"]:
            head = f"Nothing left to migrate on {count} {plural(every, 'broker')}"
    elif clean:
        head = f"{count} of {number(every, '/totals/brokers')} brokers are clean"
    else:
        head = "No broker is clean yet"
    why = []
    if blocked:
        why.append(f"{number(blocked, '/summary/brokers/blocked')} {plural(blocked, 'is', 'are')} blocked by conflicts")
    if unknown:
        unread = number(summary["conflicts"].get("disk-unread", 0), "/summary/conflicts/disk-unread")
        disks = plural(summary["conflicts"].get("disk-unread", 0), "disk was", "disks were")
        why.append(
            f"{number(unknown, '/summary/brokers/unknown')} {plural(unknown, 'is', 'are')} unknown, "
            f"because {unread} {disks} not read{_unread(model)}"
        )
    units = sum(summary["conflicts"].values())
    lead = "No conflict stands in the way."
    if units:
        found = f"{number(units, '/totals/conflicts')} {plural(units, 'conflict')} below"
        lead = f"The {found} {plural(units, 'blocks', 'block')} no broker, but {plural(units, 'is', 'are')} there."
    if why:
        lead = f"{sentence(why)}."
    legend = "".join(
        f'<li class="{key}"><b>{number(brokers[key], f"/summary/brokers/{key}")}</b> {key}</li>'
        for key in ("clean", "blocked", "unknown")
    )
    readiness = bar([(f"r{key}", brokers[key]) for key in ("clean", "blocked", "unknown")], every, "bar tall", 6)
    commands = "".join(map(_advice, next_commands(model)))
    warning = f'<p class="warn">{text(NO_BROKER)}</p>' if totals["steps"] else ""
    return (
        f'<h1>{head}</h1><p class="lead">{lead}</p>{warning}'
        f'<div class="ready">{readiness}<ul>{legend}</ul></div>'
        f'<dl class="figures">{_figures(model)}</dl>'
        f'<div class="next"><h2>Next command</h2><dl>{commands}</dl></div>'
    )


def _unread(model: Model) -> str:
    """Return the first unread disks by broker and path, in parentheses; empty if there are none."""
    unread = [disk for disk in model["disks"] if disk["status"] != "ok"]
    several = len(model["clusters"]) > 1
    names = []
    for disk in unread[:_UNREAD_SHOWN]:
        cluster = f" of {text(disk['cluster'])}" if several else ""
        path = f'<span class="mono"><bdi>{text(disk["log_dir"])}</bdi></span>' if disk["log_dir"] else "path not known"
        names.append(f"broker {disk['node_id']}{cluster} {path}")
    if len(unread) > len(names):
        names.append(f"{grouped(len(unread) - len(names))} more under Disks")
    return f" ({', '.join(names)})" if names else ""


def _advice(advice: Advice) -> str:
    command = "" if advice.command is None else f'<dd><code class="cmd">{text(advice.command)}</code></dd>'
    return f"<div><dt>{text(advice.why)}</dt>{command}</div>"


def _figures(model: Model) -> str:
    summary, totals = model["summary"], model["totals"]
    offline = summary["offline_during"]
    tiles = [
        (
            "Waves",
            number(summary["waves"], "/summary/waves"),
            f"every plan needs at least {number(summary['lower_bound'], '/summary/lower_bound')}"
            + (", why more stands below" if summary["waves"] > summary["lower_bound"] else ""),
        ),
        (
            "Offline during it",
            number(offline, "/summary/offline_during"),
            f"{plural(offline, 'partition')} with one replica only" if offline else "every partition keeps its floor",
        ),
        (
            "Broker restarts",
            number(totals["restarts"], "/totals/restarts"),
            (
                f"{duration_at(totals['length_ms'], '/totals/length_ms')} at an assumed "
                f"{duration_at(totals['restart_ms'], '/totals/restart_ms')} a wave, for "
                f"{number(totals['steps'], '/totals/steps')} renames"
            ),
        ),
        (
            "On disk",
            size_at(summary["bytes"], "/summary/bytes"),
            (
                f"{number(summary['replicas'], '/summary/replicas')} replicas in "
                f"{number(summary['log_dirs'], '/summary/log_dirs')} log dirs"
            ),
        ),
        (
            "Could be reclaimed",
            size_at(totals["reclaimable"][1], "/totals/reclaimable/1"),
            f"{number(totals['reclaimable'][0], '/totals/reclaimable/0')} directories out of service",
        ),
    ]
    return "".join(
        f"<div><dt>{name}</dt><dd><b>{value}</b><span>{note}</span></dd></div>" for name, value, note in tiles
    )


def waves(model: Model) -> str:
    """Return the waves of every cluster on one time axis."""
    parts = [_cluster_waves(model, number) for number in range(len(model["clusters"]))]
    many = " Clusters run side by side." if len(parts) > 1 else ""
    return (
        '<p class="note">The brokers of a wave may be stopped together: every partition keeps its floor on the others. '
        f"Times count the renames, and {duration_at(model['totals']['restart_ms'], '/totals/restart_ms')} for the "
        f"restarts of each wave: an assumption.{many}</p>{''.join(parts)}{_trial(model)}"
    )


def _trial(model: Model) -> str:
    commands = "".join(map(_advice, trial(model)))
    if not commands:
        return ""
    return (
        f'<details class="trial"><summary>{text(trial_title(model))}</summary><p class="note">{text(NO_BROKER)} '
        f'Type them in the plan\'s directory.</p><div class="next"><dl>{commands}</dl></div></details>'
    )


def _cluster_waves(model: Model, index: int) -> str:
    facts, cluster = model["clusters"][index], model["waves"]["clusters"][index]
    axis = model["totals"]["length_ms"]
    rows = []
    for place, wave in enumerate(facts["waves"]):
        at = f"/clusters/{index}/waves/{place}"
        ids = wave["node_ids"]
        rows.append(
            f'<tr><th scope="row">{place}</th><td>{len(ids):,} {plural(len(ids), "broker")}'
            f'<small class="ids">{ranges(ids)}</small></td>'
            f'<td class="wide">{span(wave["start_ms"], wave["length_ms"], axis)}</td>'
            f'<td class="n">{number(wave["restarts"], at + "/restarts")}'
            f"<small>{duration_at(wave['length_ms'], at + '/length_ms')}</small></td></tr>"
        )
    title = _cluster_title(model, index)
    if not rows:
        return f'{title}<p class="none">No wave: no broker of this cluster is clean.</p>'
    why = above_bound(cluster, facts)
    why = f" {why}" if why else ""
    table = (
        f'<table class="waves"><caption>{number(len(rows), f"/clusters/{index}/wave_count")} '
        f"{plural(len(rows), 'wave')} of {text(facts['name'])}, from 0; every plan needs at least "
        f"{number(cluster['lower_bound'], f'/waves/clusters/{index}/lower_bound')}.{text(why)}</caption>"
        '<thead><tr><th scope="col">Wave</th><th scope="col">Node ids</th>'
        f'<th scope="col" class="wide">0 to {duration_at(axis, "/totals/length_ms")}</th>'
        f'<th scope="col" class="n">Restarts</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )
    if len(rows) > _WAVES_OPEN:
        table = f"<details><summary>All {len(rows):,} waves of {text(facts['name'])}</summary>{table}</details>"
    return title + table


def _cluster_title(model: Model, index: int) -> str:
    if len(model["clusters"]) == 1:
        return ""
    return f"<h3>{text(model['clusters'][index]['name'])}</h3>"


def conflicts(model: Model) -> str:
    """Return the section *Conflicts* as HTML: each kind found, with broker and path of its entries; then the rest."""
    found = [conflict for conflict in model["conflicts"] if conflict["units"]]
    clear = [conflict["slug"] for conflict in model["conflicts"] if not conflict["units"]]
    found.sort(key=lambda conflict: (conflict["slug"] == "leftover", conflict["slug"] == "missing-id"))
    several = len(model["clusters"]) > 1
    parts = [_conflict(conflict, several) for conflict in found] or ['<p class="none">No conflict was found.</p>']
    rest = ", ".join(f"<code>{text(slug)}</code>" for slug in clear)
    none = f'<p class="note">Looked for and not found: {rest}.</p>' if clear and found else ""
    return "".join(parts) + none


def _conflict(conflict: Conflict, several: bool) -> str:
    slug, shown = conflict["slug"], conflict["shown"]
    title, advice = SLUG_WORDS.get(slug, (slug, ""))
    at = f"/conflicts/{slug}"
    cut = len(shown) < conflict["holders"]
    caption = f"{number(conflict['holders'], at + '/holders')} {plural(conflict['holders'], 'holder')}"
    if cut:
        caption += f", the first {number(len(shown), at + '/shown')} here, all in <code>conflicts/</code>"
    rows = "".join(_holder(row, several) for row in shown)
    opened = " open" if len(shown) <= _HOLDERS_OPEN else ""
    return (
        f'<details class="conflict"{opened}><summary><span><b>{text(title)}</b> '
        f"<code>{text(slug)}</code></span> "
        f'<span class="count">{number(conflict["units"], at + "/units")}</span></summary>'
        f'<p>{text(advice)}</p><table data-slug="{text(slug)}"><caption>{caption}</caption>'
        '<thead><tr><th scope="col">Broker</th><th scope="col">Path</th><th '
        'scope="col">Partition and id</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></details>"
    )


def holder_path(row: ConflictRow) -> str:
    """Return where a holder of a conflict lies: a path on the broker, or a name in the work root of a log dir."""
    log_dir, name = row["log_dir"], row["name"]
    if log_dir is None:
        return name or "–"
    if name is None:
        return log_dir
    # The root is in the unit only, whose parts may hold the separator: it is rebuilt and compared.
    unit = "|".join((row["cluster"] or "", str(row["node_id"]), log_dir, "work-root", name))
    return f"{name} in the work root of {log_dir}" if row["unit"] == unit else f"{log_dir.rstrip('/')}/{name}"


def _holder(row: ConflictRow, several: bool) -> str:
    node = "–" if row["node_id"] is None else str(row["node_id"])
    cluster = f"<small>{text(row['cluster'])}</small>" if several and row["cluster"] is not None else ""
    what = ""
    if row["topic"] is not None:
        partition = "" if row["partition"] is None else f"-{row['partition']}"
        what = f"<bdi>{text(row['topic'])}{partition}</bdi>"
    if row["topic_id"] is not None:
        what += f'<small class="mono">{text(row["topic_id"])}</small>'
    if row["detail"]:
        what += f"<small>{text(row['detail'])}</small>"
    return (
        f'<tr><th scope="row">{node}{cluster}</th><td class="mono"><bdi>{text(holder_path(row))}</bdi></td>'
        f"<td>{what or '–'}</td></tr>"
    )


def reclaim(model: Model) -> str:
    """Return the reclaimable data on the disks by kind, and the disks with most of it."""
    totals = model["totals"]
    whole = totals["reclaimable"][1]
    rows = []
    for kind in RECLAIMABLE:
        entries, held = totals["kinds"].get(kind, [0, 0])
        at = f"/totals/kinds/{kind}"
        css = {"delete": "kd", "stray": "ks", "future": "kf", "staged": "kg"}[kind]
        rows.append(
            f'<tr><th scope="row"><i class="dot {css}"></i>{kind}<small>{KIND_WORDS[kind]}</small></th>'
            f'<td class="n">{number(entries, at + "/0")}</td><td class="n">{size_at(held, at + "/1")}</td>'
            f'<td class="wide how">{bar([(css, held)], whole)}<small>{_RECLAIM_HOW[kind]}</small></td></tr>'
        )
    rows.append(
        '<tr class="sum"><th scope="row">Together</th><td '
        f'class="n">{number(totals["reclaimable"][0], "/totals/reclaimable/0")}'
        f'</td><td class="n">{size_at(whole, "/totals/reclaimable/1")}</td><td class="wide how"><small>'
        f"{number(totals['reclaimable_percent'], '/totals/reclaimable_percent')} % of all "
        "bytes</small></td></tr>"
    )
    return (
        '<table class="reclaim"><caption>Directories out of service, over all disks that were '
        "read</caption><thead><tr>"
        '<th scope="col">Kind</th><th scope="col" class="n">Entries</th><th scope="col" class="n">Bytes</th>'
        f'<th scope="col" class="wide">How it goes</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
        f"{_reclaim_disks(model)}"
    )


def _reclaim_disks(model: Model) -> str:
    rows = []
    for place in model["totals"]["most_reclaimable"]:
        disk = model["disks"][place]
        at = f"/disks/rows/{place}/{DISK_COLUMNS.index('kinds')}"
        held = {kind: disk["kinds"].get(kind, {}).get("bytes", 0) for kind in RECLAIMABLE}
        shown = ", ".join(f"{kind} {size_at(held[kind], f'{at}/{kind}/1')}" for kind in held if held[kind])
        rows.append(
            f'<tr><th scope="row">{disk["node_id"]}</th><td class="mono">'
            f"<bdi>{text(disk['log_dir'] or '–')}</bdi></td>"
            f"<td>{shown}</td></tr>"
        )
    if not rows:
        return ""
    return (
        f"<table><caption>The {grouped(len(rows))} {plural(len(rows), 'disk')} with most to "
        "reclaim</caption><thead><tr>"
        '<th scope="col">Broker</th><th scope="col">Log dir</th><th scope="col">Bytes by kind'
        "</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
