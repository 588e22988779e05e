//! The website: every page and every link on it, names that are markup, and errors.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use clqd::api::requests;
use clqd::fleet::{FaultShares, Fleet, Protocol, ProtocolShares};
use sha2::Digest as _;

use super::http::Answer;
use super::{PUBLIC_URL, Site, http};
use crate::sandbox::{fleet, fleet_of, wait_until};

/// Most pages that are followed.
const PAGES_MAX: usize = 600;

/// The limit of a page with its style sheet, bytes.
const PAGE_BYTES_MAX: usize = 100_000;

const LANGUAGES: [&str; 7] = ["en", "de", "fr", "es", "pl", "pt", "ru"];

/// The script of every page.
const SCRIPT: &str = include_str!("../../../src/web/pages/site.js");

/// A site with a closed week and with servers online.
fn site_with_history(seed: u64) -> (Site, Fleet) {
    let site = Site::with_history();
    let fleet = fleet(5, seed, 60.0, FaultShares::NONE);
    site.sandbox.add_servers(&fleet);
    site.sandbox.ok(["servers", "tag", "--add", "ctf", &fleet.urls()[0]]);
    wait_until("every server of the fleet is seen", || {
        let list = site.sandbox.list(&["--tag", "ctf"]);
        let online = site.sandbox.list(&["--online"]).len();
        online == 5 && list.iter().all(|server| !server["last_seen_ms"].is_null())
    });
    (site, fleet)
}

/// Whether a link starts a game.
fn starts_game(link: &str) -> bool {
    ["steam", "mtasa", "samp", "ddnet", "xonotic", "minecraft"]
        .iter()
        .any(|scheme| link.starts_with(&format!("{scheme}://")))
}

/// The values of an attribute, with the entities of maud decoded.
fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = String> + 'a {
    let start = format!(" {name}=\"");
    let values: Vec<&str> = html.split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect();
    values
        .into_iter()
        .map(|value| value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

/// Checks what holds for every page.
#[track_caller]
fn check_page(path: &str, answer: &Answer) {
    let html = answer.text();
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
    let policy = answer.header("content-security-policy").unwrap_or_else(|| panic!("{path}: no policy"));
    assert!(policy.starts_with("default-src 'none'; style-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert!(
        html.starts_with("<!DOCTYPE html><html lang=\"en\" data-prefix=\"\">") && html.ends_with("</html>"),
        "{path}"
    );
    // The only script is that of the site, which the policy allows by its hash.
    let code = SCRIPT.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let script = code.collect::<Vec<_>>().join("\n");
    let hash = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(&script));
    assert!(policy.contains(&format!("script-src 'sha256-{hash}';")), "{policy}");
    let bytes = html.len();
    let html = &*html.replacen(&format!("<script>{script}</script>"), "", 1);
    // The only absolute links are the page's own address, and that in other languages.
    let html = &*html.replacen("<link rel=\"canonical\" href=\"http", "<link rel=\"canonical\" href=\"", 1);
    let html = &*LANGUAGES.iter().chain(&["x-default"]).fold(html.to_owned(), |html, language| {
        html.replacen(&format!(" hreflang=\"{language}\" href=\"http"), " href=\"", 1)
    });
    for forbidden in ["<script", " style=", " onclick=", " src=\"http", "href=\"http", "javascript:"] {
        assert!(!html.contains(forbidden), "{path}: {forbidden}");
    }
    let head = html.split("</head>").next().unwrap_or_default();
    for (part, text) in [(head, "<title>"), (html, "<h1"), (html, "<main ")] {
        assert_eq!(part.matches(text).count(), 1, "{path}: {text}");
    }
    let style = include_str!("../../../src/web/pages/style.css").len();
    assert!(bytes + style <= PAGE_BYTES_MAX, "{path}: {bytes} bytes");
    let ids: Vec<String> = attributes(html, "id").collect();
    let unique: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(ids.len(), unique.len(), "{path}: an id occurs twice");
}

#[test]
fn every_link_leads_to_a_page() {
    let (site, _fleet) = site_with_history(81);
    let mut queue = VecDeque::from([("/".to_owned(), "the start".to_owned())]);
    let mut seen: BTreeMap<String, String> = queue.iter().cloned().collect();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut followed = 0;
    let mut ids: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut anchors: BTreeSet<(String, String, String)> = BTreeSet::new();
    while let Some((path, from)) = queue.pop_front() {
        let answer = site.get(&path);
        assert_eq!(answer.status, 200, "{path}, linked from {from}: {}", String::from_utf8_lossy(&answer.body));
        let is_page = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        *kinds.entry(path.split(['/', '?']).nth(1).unwrap_or_default().to_owned()).or_default() += 1;
        if !is_page {
            continue;
        }
        check_page(&path, &answer);
        let html = answer.text();
        ids.insert(path.clone(), attributes(html, "id").collect());
        for link in ["href", "action", "src"].into_iter().flat_map(|name| attributes(html, name)) {
            if let Some(id) = link.strip_prefix('#') {
                assert!(html.contains(&format!(" id=\"{id}\"")), "{path}: {link}");
            }
            let link = link.strip_prefix(PUBLIC_URL).unwrap_or(&link);
            // Other languages have a test of their own.
            if LANGUAGES.iter().any(|language| link.starts_with(&format!("/{language}/"))) {
                continue;
            }
            let (link, id) = link.split_once('#').unwrap_or((link, ""));
            let link = link.to_owned();
            if !link.is_empty() && !id.is_empty() {
                anchors.insert((link.clone(), id.to_owned(), path.clone()));
            }
            if link.is_empty() || starts_game(&link) || seen.contains_key(&link) || followed == PAGES_MAX {
                continue;
            }
            assert!(link.starts_with('/'), "{path}: {link}");
            followed += 1;
            seen.insert(link.clone(), path.clone());
            queue.push_back((link, path.clone()));
        }
    }
    for (path, id, from) in &anchors {
        assert!(ids.get(path).is_none_or(|ids| ids.contains(id)), "{path}#{id}, linked from {from}");
    }
    let to_boards = anchors.iter().filter(|(_, id, _)| id == "boards").count();
    assert!(to_boards > 20, "links to boards lead to them: {to_boards}");
    for kind in [
        "",
        "servers",
        "games",
        "tags",
        "maps",
        "players",
        "series",
        "about",
        "search",
        "compare",
        "style.css",
        "icon.svg",
        "api",
        "banners",
    ] {
        assert!(kinds.contains_key(kind), "{kind} is linked: {kinds:?}");
    }
    site.daemon.stop();
}

#[test]
fn boards_of_closed_weeks_have_movement_pages_and_a_search() {
    let (site, _fleet) = site_with_history(82);
    let sandbox = &site.sandbox;
    let server = "/servers/source://127.0.1.0:27960";
    let get = |path: &str| {
        let answer = site.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        check_page(path, &answer);
        answer.text().to_owned()
    };
    let of_week = |args: &[&str]| {
        sandbox
            .json([&["board", "page", "--server", "source://127.0.1.0:27960", "--window", "2025-W47"], args].concat())
    };
    let all = get(&format!("{server}?window=2025-W47"));
    for title in ["CLQ1", "CLQ2", "ELO", "Points", "Time"] {
        assert!(all.contains(&format!("{title}, 2025-W47</span></caption>")), "{title}");
    }
    let hostname = sandbox.json(["servers", "show", "source://127.0.1.0:27960"])[0]["hostname"].clone();
    let hostname = hostname.as_str().expect("a name");
    for (path, title) in [
        (server.to_owned(), hostname.to_owned()),
        (format!("{server}?window=2025-W47"), format!("Rankings of 2025-W47: {hostname}")),
        (format!("{server}?window=2025-W47&ranking=points"), format!("Points in 2025-W47: {hostname}")),
        (
            "/games/baseq3?window=2025-W47&ranking=elo".to_owned(),
            "ELO in 2025-W47: Quake III Arena / Quake Live".to_owned(),
        ),
        ("/tags/ctf?window=2025-W48".to_owned(), "Rankings of 2025-W48: ctf".to_owned()),
    ] {
        assert!(get(&path).contains(&format!("<title>{title} - Game statistics</title>")), "{path}: {title}");
    }
    let page = get(&format!("{server}?window=2025-W47&ranking=points"));
    assert!(page.contains("Closed: final.") || page.contains("Running: provisional."));
    let rows = of_week(&["--ranking", "points", "-n", "50"]);
    for row in &rows[1..] {
        let link = format!("/players/{}\"", row["player_key"]);
        assert!(page.contains(&link), "{row}");
    }
    let name = rows[2]["name"].as_str().expect("a name");
    let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let found = get(&format!("{server}?window=2025-W47&ranking=points&player={encoded}"));
    let marked = found.split("<tr class=\"found\">").nth(1).expect("the player is marked").split("</tr>").next();
    assert!(marked.is_some_and(|row| row.contains(&format!("/players/{}\"", rows[2]["player_key"]))), "{marked:?}");
    // As in any search: without case, and by its beginning.
    let start: String = name.to_uppercase().chars().take(name.chars().count() - 1).collect();
    let encoded_start: String = start.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let by_start = get(&format!("{server}?window=2025-W47&ranking=points&player={encoded_start}"));
    assert!(by_start.contains("<tr class=\"found\">"), "{start}");
    let missing = get(&format!("{server}?window=2025-W47&ranking=points&player=nobody-has-this-name"));
    assert!(missing.contains("Not found: ") && !missing.contains("class=\"found\""));

    let player = get(&format!("/players/{}", rows[1]["player_key"]));
    assert!(player.contains("2025-W47"), "{player}");
    let best = of_week(&["--ranking", "clq1", "-n", "1"]).remove(1);
    let page = get(&format!("/players/{}", best["player_key"]));
    let score = format!("<td class=\"n\">{:.2}</td>", 60.0 * best["score"].as_f64().expect("a score"));
    assert!(page.contains(&score) && all.contains(&score), "{score}: {page}");
    let (first, second) = (&rows[1], &rows[2]);
    let compared = get(&format!("/compare?a={}&b={}", first["player_key"], second["player_key"]));
    for part in ["Week by week", "?window=2025-W47#boards", " : "] {
        assert!(compared.contains(part), "{part}: {compared}");
    }
    let of_rows = |text: &str| compared.matches(text).count();
    assert!(of_rows("<strong>") > 0 && of_rows("<strong>") <= of_rows(" : ") + 5, "{compared}");
    let by_name = get(&format!("/compare?a={}&b={encoded}", first["player_key"]));
    assert!(by_name.contains("Week by week") && by_name.contains(&format!("/players/{}\"", second["player_key"])));
    let nobody = get(&format!("/compare?a={}&b=nobody-has-this-name", first["player_key"]));
    assert!(nobody.contains("No player has the name"), "{nobody}");
    assert_eq!(site.get("/compare?a=999999999&b=1").status, 404);
    assert_eq!(site.get("/compare?a=x").status, 400);
    let search = get(&format!("/search?q={encoded}"));
    assert!(search.contains(&format!("/players/{}\"", rows[2]["player_key"])), "{search}");
    site.daemon.stop();
}

#[test]
fn other_sites_show_feeds_and_frames() {
    let (site, _fleet) = site_with_history(85);
    let server = "source://127.0.1.0:27960";
    for (feed, page) in [
        (format!("/feeds/servers/{server}"), format!("/servers/{server}")),
        ("/feeds/games/baseq3".to_owned(), "/games/baseq3".to_owned()),
    ] {
        let answer = site.get(&feed);
        assert_eq!(answer.header("content-type"), Some("application/atom+xml; charset=utf-8"), "{feed}");
        let document = roxmltree::Document::parse(answer.text()).unwrap_or_else(|error| panic!("{feed}: {error}"));
        let of = |name: &str| document.descendants().filter(|node| node.tag_name().name() == name).collect::<Vec<_>>();
        let week = format!("{PUBLIC_URL}{page}?window=2025-W47");
        assert!(of("id").iter().any(|id| id.text() == Some(&*week)), "{}", answer.text());
        let contents = of("content");
        assert!(
            !contents.is_empty()
                && contents.iter().all(|content| content.text().is_some_and(|text| text.contains("CLQ1")))
        );
        let updated = of("updated")[0].text().expect("a time");
        assert!(updated.starts_with("20") && updated.ends_with('Z'), "{updated}");
        let html = site.get(&page);
        assert!(html.text().contains(&format!("type=\"application/atom+xml\" href=\"{feed}\"")), "{page}");
    }
    let key =
        site.sandbox.json(["board", "page", "--server", server, "--window", "2025-W47", "-n", "1"])[1]["player_key"]
            .clone();
    for path in [
        format!("/embed/servers/{server}"),
        format!("/embed/boards/servers/{server}?ranking=elo&window=2025-W47"),
        "/embed/boards/games/baseq3".to_owned(),
        format!("/embed/players/{key}"),
    ] {
        let answer = site.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        check_page(&path, &answer);
        assert!(
            answer.header("content-security-policy").is_some_and(|policy| policy.ends_with("frame-ancestors *")),
            "{path}"
        );
    }
    for path in ["/", "/players/999999999", "/embed/players/999999999"] {
        let policy = site.get(path).header("content-security-policy").map(str::to_owned);
        assert!(policy.is_some_and(|policy| policy.ends_with("frame-ancestors 'none'")), "{path}");
    }
    let old = site.get("/games/baseq3?window=2020-W01");
    assert_eq!(old.status, 404);
    assert!(old.text().contains("href=\"/games/baseq3#boards\""), "{}", old.text());
    assert_eq!(site.get("/feeds/games/unknown").status, 404);
    assert_eq!(site.get("/embed/boards/games/unknown").status, 404);
    site.daemon.stop();
}

#[test]
fn errors_are_pages_for_people_and_problems_for_programs() {
    let site = Site::start("");
    for (path, status, text) in [
        ("/nothing", 404, "there is no /nothing"),
        ("/servers/nonsense", 400, "server URL"),
        ("/servers/quake3://192.0.2.1:27960", 404, "quake3://192.0.2.1:27960"),
        ("/servers?order=nam", 400, "did you mean name?"),
        ("/servers?after=!", 400, "not a cursor"),
        ("/servers/quake3://192.0.2.1:27960?window=2020-W01", 404, "This site knows no such server."),
        ("/players/1", 404, "This site knows no such player."),
        ("/players/x", 400, "is a number"),
        ("/games/%3Cb%3E", 404, "&lt;b&gt;"),
        ("/games/%E2%80%AEa", 404, "game &quot;\\u{202e}a&quot;"),
        ("/maps/%ff", 400, "not UTF-8"),
    ] {
        let answer = site.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        check_page(path, &answer);
        assert!(answer.text().contains(text), "{path}: {}", answer.text());
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    }
    let in_german = site.get("/de/servers/quake3://192.0.2.1:27960");
    assert!(in_german.text().contains("Diesen Server kennt diese Seite nicht."), "{}", in_german.text());
    site.get("/api/v1/nothing").assert_problem(404, "not_found");
    let posted = http::request(&site.address, "POST", "/servers", "");
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")));
    let head = http::request(&site.address, "HEAD", "/about", "");
    let length: usize = head.header("content-length").and_then(|text| text.parse().ok()).expect("a length");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(length, site.get("/about").body.len());
    let empty = site.get("/");
    assert_eq!(empty.status, 200);
    check_page("/", &empty);
    site.daemon.stop();
}

/// A site with the operator's name, and what search engines read of it.
#[test]
fn site_has_the_name_colour_and_links_of_the_operator() {
    let dir = tempfile::tempdir().expect("a directory");
    let logo = dir.path().join("logo.svg");
    std::fs::write(&logo, "<svg xmlns=\"http://www.w3.org/2000/svg\"/>").expect("written");
    let settings = format!(
        "public_url = \"https://stats.example.org\"\n\n[site]\ntitle = \"Clan <b> stats\"\ndescription = \"All of our servers.\"\n\
         accent = \"#b3121d\"\nlogo = {logo:?}\nlinks = [\"Imprint https://example.org/imprint\"]\n"
    );
    let site = Site::start(&settings);
    let answer = site.get("/");
    let home = answer.text();
    for part in [
        "<title>Clan &lt;b&gt; stats</title>",
        "<meta name=\"description\" content=\"All of our servers.\">",
        "<link rel=\"canonical\" href=\"https://stats.example.org/\">",
        "<meta property=\"og:url\" content=\"https://stats.example.org/\">",
        "<img src=\"/logo\" alt=\"\" height=\"32\">",
        "<a href=\"https://example.org/imprint\">Imprint</a>",
    ] {
        assert!(home.contains(part), "{part}: {home}");
    }
    assert!(site.get("/about").text().contains("<title>How it works - Clan &lt;b&gt; stats</title>"));
    assert!(site.get("/nothing").text().contains("noindex"), "an error is not for search engines");
    assert!(site.get("/search?q=ab").text().contains("noindex"));
    let style = attributes(home, "href").find(|link| link.starts_with("/style.css")).expect("a style sheet");
    assert!(site.get(&style).text().contains("--accent: #b3121d"));
    let answer = site.get("/logo");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("image/svg+xml")));
    assert_eq!(answer.header("content-security-policy"), Some("default-src 'none'"));
    let robots = site.get("/robots.txt");
    assert!(robots.text().ends_with("\nSitemap: https://stats.example.org/sitemap.xml\n"), "{}", robots.text());
    site.daemon.stop();
    // A search engine that reaches it through a proxy would take 127.0.0.1 for its address.
    let site = Site::start("");
    for path in ["/", "/games", "/robots.txt"] {
        let answer = site.get(path);
        assert!(!answer.text().contains("http://127."), "{path}: {}", answer.text());
    }
    site.daemon.stop();
}

/// Servers of the simulation are at 127.1.0.1 and further, which are in Sweden in the database.
#[test]
fn servers_have_countries_if_there_is_a_database() {
    let database = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/countries.mmdb");
    let site = Site::start(&format!("\n[geo]\ndatabase = {database:?}\n"));
    let fleet = fleet(3, 86, 60.0, FaultShares::NONE);
    site.sandbox.add_servers(&fleet);
    wait_until("all servers are seen", || site.sandbox.list(&["--online"]).len() == 3);
    let url = &fleet.urls()[0];
    wait_until("the list has the country of all", || site.get("/servers").text().contains("Sweden (3)"));
    let listed = |query: &str| site.get(&format!("/servers?{query}")).text().matches("🇸🇪 SE").count();
    assert_eq!((listed("country=SE"), listed("country=NO"), listed("order=name")), (3, 0, 3));
    let keys = |query: &str| site.get(&format!("/api/v1/servers?{query}")).json()["servers"].as_array().map(Vec::len);
    assert_eq!((keys("country=se"), keys("country=NO")), (Some(3), Some(0)));
    assert_eq!(site.sandbox.list(&["--country", "SE"]).len(), 3);
    let page = site.get(&format!("/servers/{url}")).text().to_owned();
    assert!(page.contains("href=\"/servers?country=SE\">🇸🇪 Sweden<"), "{page}");
    let countries =
        site.daemon.client().expect("a connection").lines(&requests::ServersCountries {}).expect("an answer");
    assert_eq!(countries.iter().map(|row| (&row.country[..], row.servers_online)).collect::<Vec<_>>(), [("SE", 3)]);
    super::openapi::assert_program_gets_described(&site, "servers.countries");
    site.daemon.stop();
}

#[test]
fn countries_need_a_database() {
    let site = Site::start("");
    let answer = site.get("/api/v1/servers?country=SE");
    answer.assert_problem(409, "refused");
    assert!(answer.text().contains("geo.database"), "{}", answer.text());
    assert_eq!(site.get("/servers?country=SE").status, 200, "a link from before");
    let output = site.sandbox.run(["servers", "list", "--country", "SE"]);
    assert!(output.err.contains("geo.database"), "{}", output.err);
    site.daemon.stop();
}

/// The settings of a server and the order of its maps are on its page.
#[test]
fn servers_show_what_they_publish() {
    let site = Site::start("");
    let fleet = fleet_of(ProtocolShares::only(Protocol::Quake3), 1, 87, 240.0, FaultShares::NONE);
    site.sandbox.add_servers(&fleet);
    let path = format!("/api/v1/servers/{}", http::encoded(&fleet.urls()[0]));
    let detail = || site.get(&path).json();
    wait_until("the map has changed three times", || {
        detail()["maps_seen"].as_array().is_some_and(|maps| maps.len() > 3)
    });
    let detail = detail();
    let settings = detail["settings"].as_array().expect("settings");
    let named = |name: &str| settings.iter().find(|setting| setting["name"] == name);
    assert!(named("g_gametype").is_some() && named("challenge").is_none(), "{settings:?}");
    let maps = detail["maps_seen"].as_array().expect("maps");
    assert_eq!(maps.last().map(|map| &map["map"]), Some(&detail["map"]));
    assert!(
        maps.windows(2).all(
            |pair| pair[0]["map"] != pair[1]["map"] && pair[0]["since_ms"].as_i64() <= pair[1]["since_ms"].as_i64()
        )
    );
    let page = site.get(&format!("/servers/{}", fleet.urls()[0]));
    check_page("the server", &page);
    for text in ["Settings of the server", "<bdi>g_gametype</bdi>", "Order of the maps as seen"] {
        assert!(page.text().contains(text), "{text}: {}", page.text());
    }
    site.daemon.stop();
}

/// Each kind of page in each language: all links stay in the language of the path.
#[test]
fn pages_are_in_the_language_of_the_path_or_of_the_visitor() {
    let (site, fleet) = site_with_history(88);
    let player = site.sandbox.top(&fleet.urls()[0], "points");
    let player_key = player.first().map_or(1, |row| row["player_key"].as_u64().expect("a key"));
    let server = format!("/servers/{}", fleet.urls()[0]);
    let paths = [
        "/",
        "/servers",
        "/games",
        "/games/baseq3",
        "/tags/ctf",
        "/maps",
        "/search?q=a",
        "/about",
        "/about/accuracy",
        "/api",
        "/compare",
        "/series?series=hours",
        "/players/1",
        "/problems/busy",
        "/suggest?q=a",
    ];
    let paths = paths.map(str::to_owned).into_iter().chain([
        server.clone(),
        format!("{server}?window=2025-W47&ranking=elo"),
        format!("/players/{player_key}"),
        format!("/embed{server}"),
    ]);
    let mut bytes = BTreeMap::new();
    for path in paths {
        for language in LANGUAGES {
            let prefix = format!("/{language}");
            let answer = site.get(&format!("{prefix}{path}"));
            let html = answer.text();
            let status = site.get(&path).status;
            assert_eq!(answer.status, status, "{prefix}{path}: {html}");
            *bytes.entry(path.clone()).or_insert(0) = html.len();
            let is_fragment = path.starts_with("/suggest");
            let start = format!("<!DOCTYPE html><html lang=\"{language}\" data-prefix=\"{prefix}\">");
            assert!(is_fragment || html.starts_with(&start), "{path}: {html}");
            assert_eq!(
                answer.header("vary").map(str::to_ascii_lowercase).as_deref(),
                Some("accept-encoding"),
                "{path}"
            );
            let body = html.split_once("<body").map_or(html, |(_, body)| body);
            for link in ["href", "action", "data-href"].into_iter().flat_map(|name| attributes(body, name)) {
                let is_prefixed = LANGUAGES.iter().any(|other| link.starts_with(&format!("/{other}/")));
                let has_none = ["/api/v1/", "/banners/"].iter().any(|start| link.starts_with(start));
                assert!(!link.starts_with('/') || is_prefixed || has_none, "{prefix}{path}: {link}");
            }
        }
    }
    assert!(bytes.len() > 15 && bytes.values().all(|bytes| *bytes > 0), "{bytes:?}");
    let accepting = |path: &str, languages: &str| {
        http::request(&site.address, "GET", path, &format!("accept-language: {languages}\r\n"))
    };
    for (languages, heading) in [("de-CH, en;q=0.8", "Spiele"), ("tlh, pl;q=0.7", "Gry"), ("", "Games")] {
        let answer = accepting("/games", languages);
        assert!(answer.text().contains(&format!("<h1>{heading}</h1>")), "{languages}: {}", answer.text());
        let vary: Vec<&str> =
            answer.headers.iter().filter(|(name, _)| name == "vary").map(|(_, vary)| &vary[..]).collect();
        assert!(vary.contains(&"accept-language"), "{vary:?}");
    }
    assert_eq!(
        accepting("/api/v1/servers", "de").header("vary").map(str::to_ascii_lowercase).as_deref(),
        Some("accept-encoding")
    );
    let banner = format!("/banners/wide{server}.svg");
    assert_eq!(accepting(&banner, "ru").text(), accepting(&banner, "en").text(), "it is of the path only");
    assert!(site.get(&format!("/de{banner}")).text().contains(" Spieler"), "{}", site.get(&banner).text());
    let in_russian = accepting(&server, "ru");
    assert!(in_russian.text().contains(&format!("<img src=\"/ru{banner}\"")), "{}", in_russian.text());
    let feed = accepting("/feeds/games/baseq3", "de");
    assert!(feed.headers.iter().any(|(name, vary)| name == "vary" && vary == "accept-language"), "{:?}", feed.headers);
    assert!(site.get("/de/feeds/games/baseq3").text().contains("/de/games/baseq3</id>"), "an id of its own");
    assert_eq!((site.get("/de/metrics").status, site.get("/de/api/v1/status").status), (404, 404));
    let moved = site.get("/de/servers/");
    assert_eq!((moved.status, moved.header("location")), (301, Some("/de/servers")));
    assert!(site.get("/de/nothing").text().contains("<html lang=\"de\""), "an error");
    site.daemon.stop();
}

/// Addresses in a sitemap, as paths.
fn sitemap_paths(site: &Site, path: &str) -> Vec<String> {
    let answer = site.get(path);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/xml; charset=utf-8")), "{path}");
    let document = roxmltree::Document::parse(answer.text()).unwrap_or_else(|error| panic!("{path}: {error}"));
    let places = document.descendants().filter(|node| node.tag_name().name() == "loc");
    places.map(|node| node.text().and_then(|url| url.strip_prefix(PUBLIC_URL)).expect("a URL").to_owned()).collect()
}

#[test]
fn every_address_of_the_sitemap_is_a_page_with_a_card() {
    let (site, _fleet) = site_with_history(84);
    let parts = sitemap_paths(&site, "/sitemap.xml");
    let paths: Vec<String> = parts.iter().flat_map(|part| sitemap_paths(&site, part)).collect();
    for kind in ["/games/", "/tags/", "/maps/", "/servers/", "/players/", "/about"] {
        assert!(paths.iter().any(|path| path.starts_with(kind)), "{kind}: {paths:?}");
    }
    for path in &paths {
        let answer = site.get(path);
        assert_eq!(answer.status, 200, "{path}");
        let own = format!("<link rel=\"canonical\" href=\"{PUBLIC_URL}{path}\">");
        assert!(answer.text().contains(&own), "{path}: {own}");
    }
    for kind in ["/servers/", "/players/"] {
        let path = paths.iter().find(|path| path.starts_with(kind)).expect("one");
        let answer = site.get(path);
        let html = answer.text();
        let card = html.split("property=\"og:image\" content=\"").nth(1).and_then(|rest| rest.split('"').next());
        let card = card.and_then(|url| url.strip_prefix(PUBLIC_URL)).expect("a card");
        let image = site.get(card);
        assert_eq!((image.status, image.header("content-type")), (200, Some("image/png")), "{card}");
    }
    site.get("/sitemap/nothing.xml").assert_problem(404, "not_found");
    site.daemon.stop();
}

/// Links that others share have parameters of their own, and a slash at the end.
#[test]
fn pages_ignore_unknown_parameters_and_trailing_slashes() {
    let site = Site::start("");
    for path in
        ["/", "/servers", "/games", "/maps", "/about", "/api", "/problems/busy", "/search", "/series?series=hours"]
    {
        let separator = if path.contains('?') { '&' } else { '?' };
        let answer = site.get(&format!("{path}{separator}utm_source=x&utm_source=y"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        check_page(path, &answer);
    }
    assert_eq!(site.get("/players/1?utm_source=x").status, 404);
    assert_eq!(site.get("/servers?order=nam&utm_source=x").status, 400, "known parameters are checked");
    for path in ["/api/v1/status?utm_source=x", "/api/v1/servers?utm_source=x"] {
        site.get(path).assert_problem(400, "bad_request");
    }
    for (path, target) in [
        ("/servers/", "/servers"),
        ("/servers/?order=name&after=", "/servers?order=name&after="),
        ("/about//", "/about"),
        ("/players/7/", "/players/7"),
        ("/servers/quake3://192.0.2.1:27960/", "/servers/quake3://192.0.2.1:27960"),
        ("/api/v1/servers/?limit=1", "/api/v1/servers?limit=1"),
        ("//example.org/", "/example.org"),
        ("///", "/"),
        ("/\\example.org/", "/example.org"),
        ("/%2Fexample.org/", "/%2Fexample.org"),
    ] {
        let answer = site.get(path);
        assert_eq!((answer.status, answer.header("location")), (301, Some(target)), "{path}");
    }
    site.daemon.stop();
}

/// Replies to every query with names that are markup, and with invalid UTF-8.
pub(super) fn hostile_server(stopping: Arc<AtomicBool>) -> (String, std::thread::JoinHandle<()>) {
    let mut status =
        b"\\mapname\\<img src=x onerror=alert(1)>\\gamename\\</title><script>\\sv_maxclients\\8\\sv_hostname\\"
            .to_vec();
    status.extend_from_slice("^1<script>alert('\u{202E}&quot;')</script>".as_bytes());
    status.extend_from_slice(b"\xff\xfe\n");
    status.extend_from_slice(
        b"7 50 \"^1<script>alert(1)</script>\"\n5 50 \"'><svg/onload=alert(2)>\"\n3 50 \"\xc3\x28\xff\"\n",
    );
    status.extend_from_slice(format!("1 50 \"{}\"\n", "&<ñ\u{202E}".repeat(300)).as_bytes());
    fake_server(status, stopping)
}

/// Replies to every query with a status: variables and players.
fn fake_server(status: Vec<u8>, stopping: Arc<AtomicBool>) -> (String, std::thread::JoinHandle<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    let url = format!("quake3://127.0.0.1:{}", socket.local_addr().expect("bound").port());
    let thread = std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while !stopping.load(Ordering::Relaxed) {
            let Ok((len, client)) = socket.recv_from(&mut buffer) else { continue };
            let Some(nonce) = buffer[..len].strip_prefix(b"\xff\xff\xff\xffgetstatus ") else { continue };
            let mut reply = b"\xff\xff\xff\xffstatusResponse\n\\challenge\\".to_vec();
            reply.extend_from_slice(nonce.trim_ascii());
            reply.extend_from_slice(&status);
            socket.send_to(&reply, client).expect("sent");
        }
    });
    (url, thread)
}

#[test]
fn names_of_strangers_stay_text() {
    let site = Site::start("client_requests_per_second_max = 10000\nclient_burst_requests = 10000\n");
    let stopping = Arc::new(AtomicBool::new(false));
    let (url, thread) = hostile_server(stopping.clone());
    site.sandbox.ok(["servers", "add", "--tag", "ctf", &url]);
    wait_until("the server is seen", || site.sandbox.list(&["--online"]).len() == 1);
    let server = site.sandbox.json(["servers", "show", &url]).remove(0);
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let (game, map) = (server["game"].as_str().expect("a game"), server["map"].as_str().expect("a map"));
    assert!(map.contains("<img"), "{server}");
    let mut paths = vec![
        "/".to_owned(),
        "/servers".to_owned(),
        "/games".to_owned(),
        "/maps".to_owned(),
        "/api".to_owned(),
        "/problems/busy".to_owned(),
        "/tags/ctf".to_owned(),
        format!("/servers/{url}"),
        format!("/games/{}", encoded(game)),
        format!("/maps/{}", encoded(map)),
        format!("/search?q={}", encoded("<script>alert(1)</script>")),
        format!("/servers?text={}", encoded("\"><script>")),
        format!("/search?q={}", encoded("\u{202E}\"'<")),
    ];
    for player in server["players_listed"].as_array().expect("players") {
        if let Some(key) = player["player_key"].as_u64() {
            paths.push(format!("/players/{key}"));
            paths.push(format!("/embed/players/{key}"));
            paths.push(format!("/compare?a={key}&b={}", encoded("<script>alert(1)</script>\u{202E}")));
        }
    }
    assert!(paths.len() > 14, "{server}");
    paths.push(format!("/embed/servers/{url}"));
    paths.push(format!("/embed/boards/servers/{url}?ranking=time"));
    paths.push(format!("/embed/boards/games/{}?ranking=points", encoded(game)));
    // Parts of pages and XML, where names are text, too.
    for path in [
        format!("/suggest?q={}", encoded("script")),
        format!("/suggest?q={}", encoded(game)),
        format!("/feeds/servers/{url}"),
        format!("/feeds/games/{}", encoded(game)),
        "/sitemap/site.xml".to_owned(),
        "/sitemap/servers.xml".to_owned(),
    ] {
        let answer = site.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        for forbidden in ["<img", "<svg", "<script", "alert(1)<", "\u{202E}"] {
            assert!(!answer.text().contains(forbidden), "{path}: {forbidden}");
        }
        if answer.text().starts_with("<?xml") {
            let parsed = roxmltree::Document::parse(answer.text());
            assert!(parsed.is_ok(), "{path}: {:?}: {}", parsed.err(), answer.text());
        }
    }
    for path in &paths {
        let answer = site.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        check_page(path, &answer);
        // The banners are images of this site.
        let html = &answer.text().replace("<img src=\"/banners/", "");
        for forbidden in ["<img", "<svg/", "alert(1)<", "\u{202E}"] {
            assert!(!html.contains(forbidden), "{path}: {forbidden}");
        }
    }
    let page = site.get(&format!("/servers/{url}"));
    assert!(page.text().contains("&lt;script&gt;alert('&amp;quot;')&lt;/script&gt;"), "{}", page.text());
    stopping.store(true, Ordering::Relaxed);
    thread.join().expect("no panic");
    site.daemon.stop();
}

/// Names that clients would remove from paths, and names that nobody could see.
#[test]
fn names_of_dots_and_of_blanks_have_links_and_pages() {
    let site = Site::start("client_requests_per_second_max = 10000\nclient_burst_requests = 10000\n");
    let stopping = Arc::new(AtomicBool::new(false));
    let stacked = "\u{301}".repeat(60);
    let status = format!(
        "\\mapname\\..\\gamename\\.\\sv_maxclients\\8\\sv_hostname\\\u{200B}\n\
         7 50 \"\u{3164}\u{3164}\"\n5 50 \"Z{stacked}o\"\n3 50 \"👨\u{200D}👩\"\n"
    );
    let (url, thread) = fake_server(status.into_bytes(), stopping.clone());
    site.sandbox.ok(["servers", "add", "--tag", "..", &url]);
    let name_of = |player: &serde_json::Value| player["name"].as_str().map(str::to_owned);
    wait_until("the server is seen", || site.sandbox.list(&["--online"]).iter().any(|server| server["players"] == 3));
    let shown = |path: &str| {
        let answer = site.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        check_page(path, &answer);
        answer.text().to_owned()
    };
    let server = shown(&format!("/servers/{url}"));
    assert!(server.contains(&format!("><bdi>{url}</bdi></h1>")), "{server}");
    for link in ["/maps/~..", "/games/~.", "/tags/~.."] {
        assert!(server.contains(&format!(" href=\"{link}\"")), "{link}: {server}");
        assert!(shown(link).contains(&format!("/servers/{url}")), "{link}");
    }
    assert_eq!(site.get("/api/v1/maps/~..").json()["map"], "..");
    for name in [">␣␣<", ">Z\u{301}\u{301}o<", ">👨\u{200D}👩<"] {
        assert!(server.contains(name), "{name}: {server}");
    }
    let detail = site.sandbox.json(["servers", "show", &url]).remove(0);
    let players = detail["players_listed"].as_array().expect("players");
    let blank = players.iter().find(|player| name_of(player).as_deref() == Some("\u{3164}\u{3164}"));
    let key = &blank.expect("the blank player")["player_key"];
    assert!(shown(&format!("/players/{key}")).contains("<title>Player ␣␣ - Game statistics</title>"));
    let banner = site.get(&format!("/banners/wide/players/{key}.svg"));
    assert!(banner.text().contains(">␣␣</text>"), "{}", banner.text());
    assert!(site.sandbox.ok(["servers", "show", &url]).contains("␣␣"), "in a terminal, too");
    stopping.store(true, Ordering::Relaxed);
    thread.join().expect("no panic");
    site.daemon.stop();
}

/// What an admin removes is not shown any more, although answers are kept for a moment.
#[test]
fn corrections_are_visible_at_once() {
    let (site, fleet) = Site::with_fleet(2, 83);
    let url = &fleet.urls()[0];
    let path = format!("/servers/{url}");
    for (command, before, after) in [
        (vec!["greylist", url, "--reason", "fake"], "", "excluded from rankings"),
        (vec!["greylist", url, "--lift"], "excluded from rankings", ""),
    ] {
        let shown = site.get(&path);
        assert!(shown.status == 200 && shown.text().contains(before));
        site.sandbox.ok(command);
        let shown = site.get(&path);
        assert!(shown.text().contains(after) && (before.is_empty() || !shown.text().contains(before)), "{after}");
    }
    site.sandbox.ok(["servers", "remove", url]);
    assert_eq!(site.get(&path).status, 410);
    site.daemon.stop();
}
