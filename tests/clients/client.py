"""Uses the Python client that openapi-python-client generates (tests/clients/main.rs).

Arguments: the address of the site, the URL of a server, and a game. Every answer is parsed into the
generated types; a wrong answer is an exception.
"""

import sys

from clqd_client import Client
from clqd_client.api.boards import get_board, list_windows
from clqd_client.api.maps import get_map, list_maps
from clqd_client.api.players import get_player, list_players
from clqd_client.api.servers import get_best_players, get_server, list_servers
from clqd_client.api.site import get_overview, get_series, get_status, search
from clqd_client.models import GetBoardRanking, GetBoardScope, GetSeriesScope, Problem
from clqd_client.types import UNSET

site, url, game = sys.argv[1:]

with Client(base_url=site, raise_on_unexpected_status=True) as client:
    status = get_status.sync(client=client)
    assert status.kind == "status" and status.engine.servers > 0, status
    overview = get_overview.sync(client=client)
    assert overview.servers == status.engine.servers, overview
    assert get_series.sync(client=client, scope=GetSeriesScope(game=game)).to_dict().keys() == {"series"}

    # All pages of a list.
    urls, after = [], UNSET
    while True:
        page = list_servers.sync(client=client, limit=3, after=after, recent=True)
        urls += [server.url for server in page.servers]
        if page.next_ is None:
            break
        after = page.next_
    assert len(urls) == len(set(urls)) == overview.servers, urls
    server = get_server.sync(url, client=client)
    assert server.kind == "server_detail" and server.url == url and server.players_listed is not None, server
    assert get_best_players.sync(client=client, server=url).server == url

    board = get_board.sync(client=client, scope=GetBoardScope(game=game), ranking=GetBoardRanking.POINTS, count=5)
    assert board.head.ranking == "points" and 0 < len(board.rows) <= 5, board
    assert [row.position for row in board.rows] == list(range(1, len(board.rows) + 1)), board
    assert board.head.window in [window.window for window in list_windows.sync(client=client).windows]
    best = board.rows[0]
    player = get_player.sync(best.player_key, client=client)
    assert player.name == best.name and player.weeks[0].week == board.head.window, player
    named = list_players.sync(client=client, name=best.name).players
    assert best.player_key in [player.player_key for player in named], named
    # A new name may be missing for some seconds.
    found = search.sync(client=client, text=best.name).players
    assert all(best.name.lower() in player.name.lower() for player in found), found
    assert get_map.sync(server.map_, client=client).servers_online > 0
    assert list_maps.sync(client=client).maps is not None

    problem = get_board.sync(client=client, scope=GetBoardScope(game="no-such-game"))
    assert isinstance(problem, Problem) and problem.status == 404, problem

print(f"python: {len(urls)} servers, {board.head.size} players of {game}, the best is {best.name!r}")
