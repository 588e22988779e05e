//! The website in a real browser: the walk of a visitor, dark mode, the size of a phone, the
//! keyboard, and accessibility by axe-core.
//!
//! It needs Debian's packages `chromium` and `chromium-driver`, and the file of axe-core, so it is
//! ignored by default: run `bash tests/run --browser`, which gets them.

#[path = "../support/sandbox.rs"]
mod sandbox;
mod webdriver;

use std::path::Path;

use base64::Engine as _;
use clqd::fleet::FaultShares;
use sandbox::{Sandbox, WEB_WITHOUT_RATE_LIMIT, fleet, wait_until};
use serde_json::Value;
use webdriver::{Browser, TIME_ZONE};

/// The width of a small phone, CSS pixels.
const PHONE_WIDTH: u32 = 320;

/// Key codes of WebDriver.
const TAB: &str = "\u{E004}";
const ENTER: &str = "\u{E007}";
const LEFT: &str = "\u{E012}";
const DOWN: &str = "\u{E015}";

struct Visit<'a> {
    browser: &'a Browser,
    site: String,
    axe: String,
}

impl Visit<'_> {
    fn open(&self, path: &str) {
        self.browser.open(&format!("{}{path}", self.site));
    }

    /// Waits for the page that a click or a key leads to.
    fn arrive(&self, is_there: impl Fn(&str) -> bool) {
        wait_until("the next page is there", || is_there(&self.browser.path()));
    }

    /// Checks the page as it is: nothing on the console, no other host, no barrier.
    #[track_caller]
    fn check(&self, what: &str) {
        let console = self.browser.log("browser");
        assert!(console.is_empty(), "{what}: {console:?}");
        for url in self.browser.requested_urls() {
            assert!(url.starts_with(&self.site) || url == "data:,", "{what}: {url}");
        }
        self.browser.script(&self.axe);
        let script = "const done = arguments[arguments.length - 1]; \
                      axe.run(document).then(result => done(result.violations), error => done(String(error)))";
        let violations = self.browser.async_script(script);
        let list = violations.as_array().unwrap_or_else(|| panic!("{what}: axe: {violations}"));
        let shown: Vec<String> =
            list.iter().map(|it| format!("{} ({}): {}", it["id"], it["help"], it["nodes"][0]["html"])).collect();
        assert!(list.is_empty(), "{what}: {shown:#?}");
    }

    /// Writes a picture of the page, if a directory is given.
    fn picture(&self, name: &str) {
        let Some(dir) = std::env::var_os("CLQD_SCREENSHOTS") else { return };
        let png = base64::engine::general_purpose::STANDARD.decode(self.browser.screenshot()).expect("Base64");
        std::fs::write(Path::new(&dir).join(format!("{name}.png")), png).expect("a picture");
    }
}

/// A server with a graph of today.
const TODAY: &str = "quake3://127.0.1.9:27960";

/// Lists of a server in the last three hours.
fn lists_of_today(url: &str) -> String {
    let now_ms = chrono::Utc::now().timestamp_millis();
    let list = |minutes: i64| {
        let players = serde_json::json!([{"name": "Early Bird", "points": 200 - minutes, "ping": 40}]);
        let t_ms = now_ms - minutes * 60_000;
        let list = serde_json::json!({"t": t_ms, "server": url, "game": "baseq3", "map": "q3dm17", "slots": 8, "players": players});
        format!("{list}\n")
    };
    (1..90).rev().map(|n| list(2 * n)).collect()
}

/// Calls back with the values by hour of the week, UTC: those of the page as it is sent, or those that are shown `east` hours
/// ahead of UTC.
fn hours_of_week(east: i32) -> String {
    format!(
        "const done = arguments[arguments.length - 1], east = {east};
         const values = page => [...page.querySelectorAll('svg[data-hour] use')].map(cell => {{
           const day = [...cell.closest('svg').querySelectorAll('.heat')].indexOf(cell.parentNode);
           const [hour, value] = cell.textContent.split(':00, ');
           return [(day * 24 + Number(hour) - east + 168) % 168, value];
         }}).sort((a, b) => a[0] - b[0]);
         if (east) done(values(document));
         else fetch(location.href).then(answer => answer.text())
           .then(text => done(values(new DOMParser().parseFromString(text, 'text/html'))));"
    )
}

#[test]
#[ignore = "it needs Chromium: bash tests/run --browser"]
fn visitor_walks_through_the_site() {
    let axe = std::env::var("CLQD_AXE").expect("CLQD_AXE: the file of axe-core; `bash tests/run --browser` sets it");
    let axe = std::fs::read_to_string(axe).expect("the file of axe-core");
    let sandbox = Sandbox::new("");
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/scan-log.jsonl");
    let log = std::fs::read_to_string(fixture).expect("the fixture") + &lists_of_today(TODAY);
    std::fs::write(sandbox.path("log.jsonl"), log).expect("written");
    sandbox.ok([
        "replay".as_ref(),
        sandbox.path("log.jsonl").as_os_str(),
        "--state".as_ref(),
        sandbox.state().as_os_str(),
    ]);
    sandbox.configure(WEB_WITHOUT_RATE_LIMIT);
    let daemon = sandbox.start();
    let fleet = fleet(12, 91, 60.0, FaultShares::NONE);
    sandbox.add_servers(&fleet);
    sandbox.ok(["servers", "tag", "--add", "ctf", &fleet.urls()[0]]);
    wait_until("every server of the fleet is seen", || sandbox.list(&["--online"]).len() == 12);
    let address = sandbox.status()["daemon"]["web"].as_str().expect("an address").to_owned();

    let browser = Browser::start();
    let visit = Visit { browser: &browser, site: format!("http://{address}"), axe };

    // The walk: home, search, a server, its last closed week, a board, a player.
    visit.open("/");
    assert_eq!(browser.text("h1"), "Game statistics");
    visit.check("home");
    visit.picture("home");
    let server = &fleet.urls()[0];
    let searched = server.split("://").nth(1).expect("an address");
    browser.type_into("#site-search", searched);
    browser.press(ENTER);
    visit.arrive(|path| path.starts_with("/search?q=127."));
    wait_until("the name is in the index", || {
        let is_found = browser.script("return document.querySelector('main table a') !== null") == true;
        if !is_found {
            browser.open(&format!("{}{}", visit.site, browser.path()));
        }
        is_found
    });
    visit.check("search");
    visit.picture("search");
    browser.click("main table a");
    visit.arrive(|path| path.starts_with("/servers/"));
    visit.check("server");
    visit.picture("server");
    visit.open("/servers/source://127.0.1.0:27960");
    browser.script("document.querySelector('#board-window').value = '2025-W47'");
    browser.click("#boards ~ form button");
    visit.arrive(|path| path.ends_with("?window=2025-W47"));
    assert_eq!(browser.text("#boards"), "Rankings of 17 to 23 Nov 2025 (2025-W47)");
    wait_until("the page is scrolled to the boards", || {
        let position = browser.script("return document.querySelector('#boards').getBoundingClientRect().top");
        position.as_f64().expect("a position").abs() < 2.0
    });
    visit.check("last week");
    browser.click("section:nth-of-type(3) h3 a");
    visit.arrive(|path| path.ends_with("?window=2025-W47&ranking=elo"));
    visit.check("board");
    visit.picture("board");
    let second = browser.text("tbody tr:nth-of-type(2) td.name");
    browser.type_into("#board-player", &second);
    browser.press(ENTER);
    visit.arrive(|path| path.contains("player="));
    assert!(browser.text("tr.found").contains(&second));
    browser.click("tr.found a");
    visit.arrive(|path| path.starts_with("/players/"));
    assert_eq!(browser.text("h1"), second);
    visit.check("player");
    visit.picture("player");
    let player = browser.path();

    // With the script: a favourite, a value of a graph by keyboard, suggestions, and figures that follow the server.
    browser.click(".star");
    assert_eq!(browser.text(".star"), "★ Favourite");
    visit.open("/");
    wait_until("the favourite is on the first page", || browser.text("#favourites").contains(&second));
    visit.check("home with a favourite");
    visit.open("/servers/source://127.0.1.0:27960");
    browser.script("document.querySelector('svg.chart').focus()");
    browser.press(LEFT);
    assert!(browser.text("output.value").contains(": "), "{}", browser.text("output.value"));
    let typed: String = second.to_uppercase().chars().take(4).collect();
    browser.type_into("#site-search", &typed);
    wait_until("suggestions are there", || {
        let count = browser.script("return document.querySelectorAll('#suggestions:not([hidden]) li').length");
        count.as_u64().is_some_and(|count| count > 0)
    });
    visit.check("suggestions");
    visit.picture("suggestions");
    browser.press(DOWN);
    let target = browser.script("return document.querySelector('#suggestions [aria-selected]').dataset.href");
    browser.press(ENTER);
    visit.arrive(|path| target == path);
    visit.open(&format!("/servers/{TODAY}"));
    let chart = "document.querySelector('svg.chart[data-slot=\"600000\"]')";
    let newest = browser.script(&format!("return Number({chart}.dataset.newest)"));
    let newest = chrono::DateTime::from_timestamp_millis(newest.as_i64().expect("Unix ms")).expect("a time");
    let at_home = newest.with_timezone(&chrono::FixedOffset::east_opt(TIME_ZONE.1).expect("an offset"));
    let last_mark = browser.script(&format!("return [...{chart}.querySelectorAll('[data-slot]')].pop().textContent"));
    assert_eq!(last_mark, at_home.format("%H:%M").to_string());
    let caption = browser.script(&format!("return {chart}.parentNode.textContent"));
    assert!(!caption.as_str().expect("a text").contains("UTC"), "{caption}");
    visit.picture("server of today");
    let hours = "document.querySelector('svg[data-hour]')";
    let caption = browser.script(&format!("return {hours}.parentNode.querySelector('figcaption').textContent"));
    assert!(!caption.as_str().expect("a text").contains("UTC"), "{caption}");
    let [utc, own] = [0, TIME_ZONE.1 + 1_800].map(|east_s| browser.async_script(&hours_of_week(east_s / 3_600)));
    assert!(utc.as_array().is_some_and(|hours| !hours.is_empty()), "{utc}");
    assert_eq!(utc, own, "the hours of the page in UTC, and those that are shown, back in UTC");
    visit.open(&format!("/servers/{}", fleet.urls()[0]));
    let mark = "document.querySelector('#players').firstChild.isOld = true";
    browser.script(mark);
    sandbox.ok(["rescan", &fleet.urls()[0]]);
    wait_until("the players are read again", || {
        browser.script("return document.querySelector('#players').firstChild.isOld") != true
    });
    visit.check("server after a change");

    // Another language by the link at the end of the page: links, suggestions and favourites stay in it.
    visit.open("/");
    browser.click("footer a[hreflang=de]");
    visit.arrive(|path| path == "/de/");
    assert_eq!(browser.text("h1"), "Game-Statistiken");
    browser.click("#favourites a");
    visit.arrive(|path| path.starts_with("/de/players/"));
    assert_eq!(browser.text(".star"), "★ Favorit");
    visit.check("player in German");
    browser.type_into("#site-search", &typed);
    wait_until("suggestions are there", || {
        let paths =
            browser.script("return [...document.querySelectorAll('#suggestions li')].map(li => li.dataset.href)");
        let paths = paths.as_array().expect("paths").iter().map(|path| path.as_str().expect("a path").to_owned());
        let paths: Vec<String> = paths.collect();
        !paths.is_empty() && paths.iter().all(|path| path.starts_with("/de/"))
    });

    // All kinds of pages, light and dark, large and on a phone.
    let server = format!("/servers/{}", fleet.urls()[0]);
    let list = sandbox.list(&["--online"]);
    let game = list[0]["game"].as_str().expect("a game").to_owned();
    let map = list.iter().find_map(|server| server["map"].as_str()).expect("a map").to_owned();
    let key = player.trim_start_matches("/players/").to_owned();
    let pages = [
        (format!("/compare?a={key}&b=1"), "compare"),
        (format!("/embed{server}"), "frame"),
        ("/".to_owned(), "home"),
        ("/servers?order=name".to_owned(), "servers"),
        (server.clone(), "server"),
        (format!("{server}?ranking=points"), "board of a server"),
        ("/servers/source://127.0.1.0:27960?window=2025-W48".to_owned(), "boards with movement"),
        ("/games/baseq3?window=2025-W48&ranking=time".to_owned(), "board of a game"),
        (format!("/series/{}?series=ten_minutes", fleet.urls()[0]), "series"),
        (player, "player"),
        ("/games".to_owned(), "games"),
        (format!("/games/{game}"), "game"),
        ("/tags/ctf".to_owned(), "tag"),
        ("/maps".to_owned(), "maps"),
        (format!("/maps/{map}"), "map"),
        ("/search?q=a".to_owned(), "search"),
        ("/about".to_owned(), "about"),
        ("/api".to_owned(), "API"),
        ("/problems/busy".to_owned(), "problem"),
    ];
    let background = || browser.script("return getComputedStyle(document.body).backgroundColor");
    visit.open("/");
    let light = background();
    for scheme in ["light", "dark"] {
        browser.prefer_colour_scheme(scheme);
        for (path, name) in &pages {
            visit.open(path);
            visit.check(&format!("{name}, {scheme}"));
            assert_eq!(background() == light, scheme == "light", "{name}, {scheme}");
        }
        visit.open(&server);
        visit.picture(&format!("server-{scheme}"));
    }
    browser.prefer_colour_scheme("light");
    browser.set_size(PHONE_WIDTH, 740, true);
    for (path, name) in &pages {
        visit.open(path);
        visit.check(&format!("{name} on a phone"));
        let width = browser.script("return document.documentElement.scrollWidth").as_u64().expect("a width");
        assert!(width <= u64::from(PHONE_WIDTH), "{name} on a phone is {width} pixels wide");
    }
    for language in ["de", "fr", "es", "pl", "pt", "ru"] {
        for (path, name) in &pages {
            visit.open(&format!("/{language}{path}"));
            visit.check(&format!("{name} on a phone, {language}"));
            let width = browser.script("return document.documentElement.scrollWidth").as_u64().expect("a width");
            assert!(width <= u64::from(PHONE_WIDTH), "{name} on a phone, {language}, is {width} pixels wide");
        }
    }
    visit.open("/");
    visit.picture("phone");

    // By keyboard: the first stop is the link to the content, and it leads there.
    browser.press(TAB);
    let focused = |script: &str| browser.script(&format!("return document.activeElement.{script}"));
    assert_eq!(focused("innerText"), Value::from("Skip to the content"));
    browser.press(ENTER);
    assert_eq!(browser.script("return location.hash"), Value::from("#main"));
    browser.press(TAB);
    let inside = browser.script("return document.querySelector('main').contains(document.activeElement)");
    assert_eq!(inside, Value::from(true), "the next stop is in the content");

    // An error is a page, too.
    browser.open(&format!("{}/players/999999999", visit.site));
    assert_eq!(browser.text("h1"), "Not found");
    daemon.stop();
}
