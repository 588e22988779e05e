// Uses the types that openapi-typescript generates, with openapi-fetch (tests/clients/main.rs).
//
// Arguments: the address of the site, the URL of a server, and a game. The compiler checks every
// parameter and field against the description; here the values are checked.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const [site, url, game] = process.argv.slice(2) as [string, string, string];
// Parameters that exclude each other are described as one object.
const querySerializer = { object: { style: "form", explode: true } } as const;
const client = createClient<paths>({ baseUrl: site, querySerializer });

function present<T>(answer: { data?: T; error?: unknown }): T {
  assert.ok(answer.data !== undefined, JSON.stringify(answer.error));
  return answer.data;
}

const status = present(await client.GET("/api/v1/status"));
const overview = present(await client.GET("/api/v1/overview"));
assert.equal(overview.servers, status.engine.servers);
const { series } = present(await client.GET("/api/v1/series", { params: { query: { scope: { game } } } }));
assert.ok(series === null || series.hours.players.length === series.hours.servers.length);

// All pages of a list.
const urls: string[] = [];
let after: string | undefined;
do {
  const query = { limit: 3, recent: true, after };
  const page = present(await client.GET("/api/v1/servers", { params: { query } }));
  urls.push(...page.servers.map((server) => server.url));
  after = page.next ?? undefined;
} while (after !== undefined);
assert.equal(new Set(urls).size, overview.servers);
const server = present(await client.GET("/api/v1/servers/{url}", { params: { path: { url } } }));
assert.equal(server.url, url);
const best = present(await client.GET("/api/v1/best", { params: { query: { server: url } } }));
assert.equal(best.server, url);

const query = { scope: { game }, ranking: "points", count: 5 } as const;
const board = present(await client.GET("/api/v1/boards", { params: { query } }));
assert.equal(board.head.ranking satisfies components["schemas"]["Ranking"], "points");
assert.deepEqual(board.rows.map((row) => row.position), board.rows.map((_, index) => index + 1));
const { windows } = present(await client.GET("/api/v1/windows"));
assert.ok(windows.some((window) => window.window === board.head.window));
const first = board.rows[0];
assert.ok(first !== undefined);
const path = { key: first.player_key };
const player = present(await client.GET("/api/v1/players/{key}", { params: { path } }));
assert.equal(player.name, first.name);
const { players } = present(await client.GET("/api/v1/players", { params: { query: { name: first.name } } }));
assert.ok(players.some((named) => named.player_key === first.player_key));
// A new name may be missing for some seconds.
const found = present(await client.GET("/api/v1/search", { params: { query: { text: first.name } } }));
assert.ok(found.players.every((player) => player.name.toLowerCase().includes(first.name.toLowerCase())));
assert.ok(server.map !== null);
const map = present(await client.GET("/api/v1/maps/{name}", { params: { path: { name: server.map } } }));
assert.ok(map.servers_online > 0);
present(await client.GET("/api/v1/maps"));

const { error } = await client.GET("/api/v1/boards", { params: { query: { scope: { game: "no-such-game" } } } });
assert.equal(error?.status, 404);

console.log(`typescript: ${urls.length} servers, ${board.head.size} players of ${game}, the best is ${first.name}`);
