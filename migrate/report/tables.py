"""The sections of the report that show the disks: bytes by kind, skew, layouts and ids, every broker, every disk.

Every row of the brokers' and the disks' table stands for the row of the same number in the embedded JSON.

Not here: what an operator should do next (``report.sections``).

Spec: design §7.1, §7.7.
"""

from __future__ import annotations

from itertools import groupby

from logdir.markup import KIND_CLASSES, KIND_WORDS, bar, cell_size, plural, size, text
from migrate.report.figure import disk_bar, kind_parts, map_cells, number, size_at, strip, used_percent
from migrate.report.model import BrokerFacts, Model, Spread, sum_kinds
from migrate.report.plan import Broker, Disk
from migrate.report.words import READINESS_MARKS, ratio

_BROKERS_OPEN = 40
_DISKS_OPEN = 40
_MAP_SHARED = 10
"""Number of brokers with one disk that share a drawing of the map."""
_MAP_FROM = 24
"""From this number of disks the map is more useful than the table of disks."""
_LAYOUTS = (("topic-name", "kl"), ("topic-id", "kg"), ("mixed", "kd"), ("empty", "ku"))


def kinds(model: Model) -> str:
    """Return a table of all bytes by kind of entry and, of a fleet of more than 24 disks, the map of disks."""
    totals = model["totals"]
    whole = totals["bytes"]
    css = dict(KIND_CLASSES)
    rows = []
    for kind, (entries, held) in sorted(totals["kinds"].items(), key=lambda item: (-item[1][1], item[0])):
        at = f"/totals/kinds/{kind}"
        rows.append(
            f'<tr><th scope="row"><i class="dot {css.get(kind, "ko")}"></i>{text(kind)}'
            f"<small>{KIND_WORDS.get(kind, '')}</small></th>"
            f'<td class="n">{number(entries, at + "/0")}</td><td class="n">{size_at(held, at + "/1")}</td>'
            f'<td class="wide">{bar([(css.get(kind, "ko"), held)], whole)}</td></tr>'
        )
    space = ""
    if totals["total_bytes"]:
        space = (
            '<p class="note">The file systems below hold '
            f"{size_at(totals['total_bytes'], '/totals/total_bytes')}, "
            f"{size_at(totals['free_bytes'], '/totals/free_bytes')} of it free "
            f"({number(totals['used_percent'], '/totals/used_percent')} % used). "
            "Log dirs on one device are counted once.</p>"
        )
    return (
        f'{bar(kind_parts(totals["kinds"]), whole, "bar tall")}<table class="kinds"><caption>All entries of '
        'the disks that were read, by kind</caption><thead><tr><th scope="col">Kind</th><th '
        'scope="col" class="n">Entries</th>'
        '<th scope="col" class="n">Bytes</th><th scope="col" class="wide">Share</th></tr></thead><tbody>'
        f"{''.join(rows)}</tbody></table>{space}{_map(model)}"
    )


def _map(model: Model) -> str:
    if len(model["disks"]) <= _MAP_FROM:
        return ""
    groups = []
    for name, of_cluster in groupby(model["disks"], key=lambda disk: disk["cluster"]):
        title = f"<h3>{text(name)}</h3>" if len(model["clusters"]) > 1 else ""
        own = [list(of_broker) for _, of_broker in groupby(of_cluster, key=lambda disk: disk["broker"])]
        cells = [map_cells(_map_label(group), group) for group in _map_groups(own)]
        groups.append(f'{title}<div class="map">{"".join(cells)}</div>')
    legend = "".join(
        f'<li><i class="dot {css}"></i>{words}</li>'
        for css, words in (
            ("f0", "under 50 %"),
            ("f1", "50 to 69 %"),
            ("f2", "70 to 79 %"),
            ("f3", "80 to 89 %"),
            ("f4", "90 % and more"),
            ("fx", "not read"),
        )
    )
    return (
        '<figure aria-label="Map of disks"><figcaption>How full each disk is: one cell per '
        "disk, one group per broker, "
        f'in order of the fleet file</figcaption><ul class="legend">{legend}</ul>{"".join(groups)}</figure>'
    )


def _map_groups(brokers: list[list[Disk]]) -> list[list[Disk]]:
    # Brokers with one disk would each be a drawing of one cell: neighbours share one.
    groups: list[list[Disk]] = []
    for own in brokers:
        last = groups[-1] if groups else []
        alone = len(own) == 1 and len(last) == len({disk["broker"] for disk in last})
        if alone and 0 < len(last) < _MAP_SHARED:
            last.extend(own)
        else:
            groups.append(list(own))
    return groups


def _map_label(group: list[Disk]) -> str:
    first, last = group[0]["node_id"], group[-1]["node_id"]
    return f"broker {first}" if group[0]["broker"] == group[-1]["broker"] else f"brokers {first} to {last}"


def skew(model: Model) -> str:
    """Return how evenly bytes are distributed over brokers, over disks, and over the disks of one broker."""
    parts = []
    for index, cluster in enumerate(model["clusters"]):
        at = f"/clusters/{index}"
        title = f"<h3>{text(cluster['name'])}</h3>" if len(model["clusters"]) > 1 else ""
        strips = _spread("broker", cluster["by_broker"], f"{at}/by_broker")
        strips += _spread("disk", cluster["by_disk"], f"{at}/by_disk")
        rows = "".join(
            f'<tr><th scope="row">{row["node_id"]}</th><td class="mono">'
            f"<bdi>{text(row['log_dir'] or '–')}</bdi></td>"
            f'<td class="n">{size_at(row["most"], f"{at}/within/{place}/most")}</td>'
            f'<td class="n">{size_at(row["mean"], f"{at}/within/{place}/mean")}</td>'
            f'<td class="n">{number(row["permille"], f"{at}/within/{place}/permille", ratio)}</td></tr>'
            for place, row in enumerate(cluster["within"])
        )
        table = (
            "<table><caption>Brokers whose own disks differ most</caption><thead><tr><th "
            'scope="col">Broker</th>'
            '<th scope="col">Most on</th><th scope="col" class="n">Bytes</th><th scope="col" '
            'class="n">Mean</th>'
            f'<th scope="col" class="n">Skew</th></tr></thead><tbody>{rows}</tbody></table>'
        )
        parts.append(title + f'<div class="pair">{strips}</div>' + (table if rows else ""))
    note = "Skew is the most over the mean: 1.00× is even. Brokers with an unread disk are left out."
    return f'<p class="note">{note}</p>{"".join(parts)}'


def _spread(noun: str, spread: Spread, at: str) -> str:
    if not spread["count"]:
        return f'<div><h4>Bytes by {noun}</h4><p class="none">Nothing to compare.</p></div>'
    figures = "".join(
        f"<div><dt>{name}</dt><dd>{size_at(value, f'{at}/{key}')}</dd></div>"
        for name, key, value in (
            ("least", "least", spread["least"]),
            ("median", "median", spread["median"]),
            ("mean", "mean", spread["mean"]),
            ("most", "most", spread["most"]),
        )
    )
    return (
        f"<div><h4>Bytes by {noun} <b>{number(spread['permille'], f'{at}/permille', ratio)}</b></h4>"
        f'{strip(spread["values"], spread["median"])}<dl class="figs">{figures}</dl></div>'
    )


def layouts(model: Model) -> str:
    """Return by cluster the layouts of its log dirs and how many replicas have a topic id; and the minted ids."""
    rows = []
    for index, cluster in enumerate(model["clusters"]):
        at = f"/clusters/{index}"
        read = cluster["log_dirs"] - cluster["unread"]
        parts = [(css, cluster["layouts"].get(layout, 0)) for layout, css in _LAYOUTS]
        shown = [
            f'<span><i class="dot {css}"></i>{layout} '
            f"{number(cluster['layouts'][layout], f'{at}/layouts/{layout}')}</span>"
            for layout, css in _LAYOUTS
            if cluster["layouts"].get(layout)
        ]
        if cluster["unread"]:
            shown.append(f'<span><i class="dot fx"></i>not read {number(cluster["unread"], at + "/unread")}</span>')
        with_id, every = cluster["replicas_with_id"], cluster["replicas"]
        rows.append(
            f'<tr><th scope="row"><bdi>{text(cluster["name"])}</bdi></th>'
            f'<td>{bar(parts, read)}<small class="row">{"".join(shown)}</small></td>'
            f"<td>{bar([('kl', with_id)], every)}<small>{number(with_id, at + '/replicas_with_id')} of "
            f"{number(every, at + '/replicas')} replicas</small></td></tr>"
        )
    return (
        '<table class="layouts"><caption>Layouts of the log dirs, and replicas that carry a '
        "topic id</caption><thead>"
        '<tr><th scope="col">Cluster</th><th scope="col">Log dirs by layout</th><th '
        'scope="col">With an id</th></tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table>{_minted(model)}"
    )


def _minted(model: Model) -> str:
    minted, every = model["summary"]["minted"], model["totals"]["minted"]
    if not every:
        return '<p class="note">No topic needed a new id.</p>'
    rows = "".join(
        f"<tr><td><bdi>{text(row['topic'])}</bdi><small>{text(row['cluster'])}</small></td>"
        f'<td class="mono">{text(row["topic_id"])}</td></tr>'
        for row in minted
    )
    count = number(every, "/totals/minted")
    cut = f"The first {number(len(minted), '/totals/minted_shown')}, all in <code>summary.json</code>"
    caption = cut if len(minted) < every else "By cluster and topic"
    return (
        f"<details{' open' if len(minted) <= _BROKERS_OPEN else ''}><summary>{count} "
        f"{plural(every, 'topic')} "
        f"without an id {plural(every, 'gets', 'get')} a new one</summary>"
        f'<table class="minted"><caption>{caption}</caption><thead><tr><th scope="col">Topic</th>'
        f'<th scope="col">Minted id</th></tr></thead><tbody>{rows}</tbody></table></details>'
    )


def brokers(model: Model) -> str:
    """Return every broker: readiness and why, wave, bytes by kind beside the largest, renames."""
    every = [(cluster["name"], broker) for cluster in model["waves"]["clusters"] for broker in cluster["brokers"]]
    largest = max((facts["bytes"] for facts in model["broker_facts"]), default=0)
    several = len(model["clusters"]) > 1
    rows = "".join(
        _broker(name if several else "", broker, facts, largest)
        for (name, broker), facts in zip(every, model["broker_facts"], strict=True)
    )
    table = (
        '<table id="brokers" class="big"><caption>Bytes by kind; the longest bar is the '
        "largest broker</caption><thead>"
        '<tr><th scope="col" data-sort="node_id">Broker</th><th scope="col" '
        'data-sort="readiness">Readiness</th>'
        '<th scope="col" class="wide" data-sort="bytes">Bytes</th><th scope="col" class="n" '
        'data-sort="steps">Renames</th>'
        f"</tr></thead><tbody>{rows}</tbody></table>"
    )
    return _folded("brokers", len(every), _BROKERS_OPEN, table)


def _broker(cluster: str, broker: Broker, facts: BrokerFacts, largest: int) -> str:
    # Thousands of these rows: end tags and quotes that HTML does not ask for are left out.
    notes = [text(cluster)] if cluster else []
    if broker["rack"] is not None:
        notes.append(f"rack {text(broker['rack'])}")
    if facts["twin"]:
        notes.append(f"entry {facts['twin']} of {facts['twins']} of this node id")
    if facts["lists"]:
        notes.append(f"lists {text(facts['lists'])}")
    ready = broker["readiness"]
    wave = f" · wave {facts['wave']}" if ready == "clean" and facts["wave"] is not None else ""
    disks = f"{facts['log_dirs']} {plural(facts['log_dirs'], 'disk')}"
    if facts["unread"]:
        disks += f", {facts['unread']} not read"
    return (
        f"<tr><th scope=row>{broker['node_id']}{_small(' · '.join(notes))}"
        f"<td><b class={ready}>{READINESS_MARKS[ready]} {ready}</b>{wave}"
        f"{_small(', '.join(text(reason) for reason in broker['reasons']))}"
        f"<td>{bar(kind_parts(facts['kinds']), largest, '')}{cell_size(facts['bytes'])}{_small(disks)}"
        f"<td>{broker['steps']:,}"
    )


def _small(words: str) -> str:
    return f"<small>{words}</small>" if words else ""


def disks(model: Model) -> str:
    """Return every disk: path, file system, layout, bytes by kind on its capacity, replicas and ids."""
    several = len(model["clusters"]) > 1
    rows = "".join(_disk(disk, several) for disk in model["disks"])
    legend = "".join(f'<li><i class="dot {css}"></i>{kind}</li>' for kind, css in KIND_CLASSES)
    table = (
        f'<ul class="legend">{legend}<li><i class="dot ko"></i>other kinds</li><li><i '
        'class="dot ku"></i>not in the log dir</li>'
        '</ul><table id="disks" class="big"><caption>Bytes by kind; a full bar is a full disk</caption>'
        '<thead><tr><th scope="col" data-sort="node_id">Broker</th><th scope="col" '
        'data-sort="log_dir">Log dir</th>'
        '<th scope="col" class="wide" data-sort="bytes">Bytes</th><th scope="col" class="n" '
        'data-sort="replicas">Replicas</th>'
        f"</tr></thead><tbody>{rows}</tbody></table>"
    )
    return _folded("disks", len(model["disks"]), _DISKS_OPEN, table)


def _disk(disk: Disk, several: bool) -> str:
    path = text(disk["log_dir"]) if disk["log_dir"] is not None else "path not known"
    head = f"<tr><th scope=row>{disk['node_id']}{_small(text(disk['cluster']) if several else '')}<td>{path}"
    if disk["status"] != "ok":
        return f"{head}<td><b class=unknown>{READINESS_MARKS['unknown']} not read</b><td>–"
    facts = [text(value) for value in (disk["device"], disk["fs_type"], disk["layout"]) if value is not None]
    own = sum_kinds([disk])
    held = sum(counted[1] for counted in own.values())
    share, total = used_percent(disk), disk["total_bytes"]
    space = "" if share is None or total is None else f"{size(total)}, {share} % used"
    missing = disk["replicas"] - disk["replicas_with_id"]
    return (
        f"{head}{_small(' · '.join(facts))}<td>{disk_bar(disk, own)}{cell_size(held)}{_small(space)}"
        f"<td>{disk['replicas']:,}{_small(f'{missing:,} without id' if missing else '')}"
    )


def _folded(noun: str, count: int, shown: int, table: str) -> str:
    opened = " open" if count <= shown else ""
    title = f"{count:,} {plural(count, noun[:-1], noun)}"
    return f'<details{opened} data-list="{noun}"><summary>{title}</summary>{table}</details>'
