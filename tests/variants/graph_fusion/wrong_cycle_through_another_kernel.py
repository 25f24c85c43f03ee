"""Joins the first kernel that a node depends on, though others on which it depends come later.

breaks: 6
"""

from graph_ir import Graph, IndexMaps, Node


def _grouped(g: Graph) -> list[Group]:
    maps = IndexMaps(g)
    groups: list[Group] = []
    home: dict[int, int] = {}  # node → place of its kernel
    waiting: set[int] = set()
    waits = _waiting(g)

    def last(numbers: list[int]) -> int | None:
        """The last kernel that these nodes depend on, beside each other."""
        places = [home[d] for i in numbers for d in g.dependencies[i] if d in home]
        return min(places, default=None)

    def place(node: Node) -> None:
        """Puts one node, all of whose dependencies are placed, where it belongs."""
        waiting.discard(node.id)
        target = last([node.id])
        if target is None or not _join(g, maps, groups[target], node):
            target = len(groups)
            if node.kind == "reduction":
                groups.append(_new_group(node, g[node.inputs[0]]))
                groups[-1].spaces[node.id] = "row"
            else:
                groups.append(_new_group(node))
        home[node.id] = target

    def held_back(node: Node) -> list[int]:
        """The nodes that wait and that this one depends on, directly or not, ascending."""
        found: set[int] = set()
        ahead = [node.id]
        while ahead:
            new = [i for i in g.dependencies[ahead.pop()] if i in waiting and i not in found]
            found.update(new)
            ahead += new
        return sorted(found)

    def place_with(node: Node, members: list[int]) -> None:
        """Puts a reduction, and nodes that have waited for it, into one kernel."""
        trial = _new_group(node, g[node.inputs[0]])
        misfits = {i for i in members if not _join(g, maps, trial, g[i])}
        if not _join(g, maps, trial, node):
            misfits.add(g.root(node.inputs[0]))
        for i in reversed(members):  # who does not come along needs its operands before
            if i in misfits:
                misfits.update(d for d in g.dependencies[i] if d in waiting)
        for i in members:
            if i in misfits:
                place(g[i])
        members = [i for i in members if i not in misfits]
        target = last([*members, node.id])
        if target is not None:
            group = groups[target]
            before = group.kind, group.width
            joined = []
            for i in [*members, node.id]:
                if not _join(g, maps, group, g[i]):
                    break
                joined.append(i)
            else:
                home.update(dict.fromkeys(joined, target))
                waiting.difference_update(joined)
                return
            for i in joined:
                del group.spaces[i]
            group.kind, group.width = before
        groups.append(_new_group(node, g[node.inputs[0]]))
        for i in [*members, node.id]:
            assert _join(g, maps, groups[-1], g[i])
            home[i] = len(groups) - 1
            waiting.discard(i)

    for node in g.nodes:
        if not node.computes:
            continue
        if waits[node.id]:
            waiting.add(node.id)
            continue
        members = held_back(node)
        if node.kind == "reduction":
            place_with(node, members)
            continue
        for i in members:
            place(g[i])
        place(node)
    return groups
