//! Banners of servers and players in all sizes and formats, their caching, and names that are
//! markup.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::http::{Answer, request};
use super::pages::hostile_server;
use super::{Site, http};
use crate::sandbox::wait_until;

/// Name, width and height of each size.
const SIZES: [(&str, u32, u32); 3] = [("wide", 468, 60), ("box", 350, 100), ("small", 160, 40)];

/// Checks a banner, and that a client that has it gets no body.
#[track_caller]
fn check_banner(site: &Site, path: &str, width: u32, height: u32) -> Answer {
    let answer = site.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    assert_eq!(answer.header("cache-control"), Some("public, max-age=60"), "{path}");
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    if path.ends_with(".png") {
        assert_eq!(answer.header("content-type"), Some("image/png"), "{path}");
        let mut reader = png::Decoder::new(std::io::Cursor::new(&answer.body)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut pixels).expect("complete");
        assert_eq!((info.width, info.height), (width, height), "{path}");
    } else {
        assert_eq!(answer.header("content-type"), Some("image/svg+xml"), "{path}");
        assert_eq!(answer.header("content-security-policy"), Some("default-src 'none'"), "{path}");
        let document = roxmltree::Document::parse(answer.text()).expect("XML");
        let root = document.root_element();
        assert_eq!(root.attribute("width"), Some(&*width.to_string()), "{path}");
        assert_eq!(root.attribute("height"), Some(&*height.to_string()), "{path}");
        for forbidden in ["<script", "<img", "<svg/", "style=", "href=", "\u{202E}"] {
            assert!(!answer.text().contains(forbidden), "{path}: {forbidden}");
        }
    }
    // A scan between the two requests changes the answer.
    wait_until("the ETag is known", || {
        let etag = site.get(path).header("etag").expect("an ETag").to_owned();
        let known = request(&site.address, "GET", path, &format!("if-none-match: {etag}\r\n"));
        assert_eq!(known.header("cache-control"), Some("public, max-age=60"), "{path}");
        known.status == 304 && known.body.is_empty()
    });
    answer
}

#[test]
fn servers_and_players_have_banners_in_all_sizes() {
    let (site, fleet) = Site::with_fleet(3, 91);
    let url = &fleet.urls()[0];
    let server = site.sandbox.json(["servers", "show", url]).remove(0);
    let players = server["players_listed"].as_array().expect("players");
    let key = players.iter().find_map(|player| player["player_key"].as_u64()).expect("a ranked player");
    for (size, width, height) in SIZES {
        for format in ["svg", "png"] {
            check_banner(&site, &format!("/banners/{size}/servers/{url}.{format}"), width, height);
            check_banner(&site, &format!("/banners/{size}/players/{key}.{format}"), width, height);
        }
    }
    let shown = site.get(&format!("/banners/wide/servers/{url}.svg"));
    // The game, and the address that players type.
    let (_, address) = url.split_once("://").expect("a URL");
    assert!(shown.text().contains(&format!(", {address}</text>")), "{}", shown.text());
    assert!(shown.text().contains(&format!("/{} players", server["slots"])), "{}", shown.text());
    // The same with an encoded URL.
    let encoded = url.replace(':', "%3A").replace('/', "%2F");
    check_banner(&site, &format!("/banners/wide/servers/{encoded}.png"), 468, 60);

    for (page, banner) in [
        (format!("/servers/{url}"), format!("/banners/wide/servers/{url}")),
        (format!("/players/{key}"), format!("/banners/wide/players/{key}")),
    ] {
        let answer = site.get(&page);
        let html = answer.text();
        assert!(html.contains(&format!("<img src=\"{banner}.svg\" alt=\"")), "{html}");
        let address = format!("http://{}", site.address);
        let bbcode = format!("[url={address}{page}][img]{address}{banner}.png[/img][/url]");
        assert!(html.contains(&format!("readonly value=\"{bbcode}\"")), "{html}");
        assert!(html.contains(&format!("img src=&quot;{address}{banner}.png&quot; width=&quot;468&quot;")), "{html}");
        for id in ["banner-wide-html", "banner-wide-bbcode", "banner-small-bbcode"] {
            let has = |text: String| html.contains(&text);
            assert!(has(format!("<label for=\"{id}\">")) && has(format!("<input id=\"{id}\"")), "{id}: {html}");
        }
    }
    site.daemon.stop();
}

#[test]
fn unknown_banners_are_error_pages() {
    let site = Site::start("");
    for (path, status, text) in [
        ("/banners/wide/servers/quake3://192.0.2.1:27960.png", 404, "quake3://192.0.2.1:27960"),
        ("/banners/wide/servers/quake3://192.0.2.1:27960", 404, "ends in .png or .svg"),
        ("/banners/wide/servers/nonsense.png", 400, "server URL"),
        ("/banners/wide/players/1.svg", 404, "key 1"),
        ("/banners/wide/players/x.svg", 400, "is a number"),
        ("/banners/wide/players/1.gif", 404, "ends in .png or .svg"),
        ("/banners/4000x4000/players/1.png", 404, "sizes are wide, box, small"),
        ("/banners/wide/players/1.png?width=4000", 400, "there is no parameter"),
        ("/banners/wide", 404, "there is no /banners/wide"),
    ] {
        let answer = http::get(&site.address, path);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert!(answer.text().contains(text), "{path}: {}", answer.text());
    }
    site.daemon.stop();
}

/// While many clients request different banners, which takes long, pages are computed.
#[test]
fn png_banners_do_not_shut_out_visitors() {
    let (site, fleet) = Site::with_fleet(1, 92);
    let url = fleet.urls().remove(0);
    // Each bit of the number says whether one of the first characters is encoded.
    let written = |number: usize| -> String {
        let write = |(n, byte): (usize, u8)| match number >> n & 1 {
            1 if n < 8 => format!("%{byte:02X}"),
            _ => char::from(byte).to_string(),
        };
        url.bytes().enumerate().map(write).collect()
    };
    let get_banner = |n: usize| {
        let path = format!("/banners/{}/servers/{}.pn%67", SIZES[n % 3].0, written(n / 3));
        let client = format!("x-forwarded-for: {}\r\n", Ipv4Addr::from_bits(0x0a00_0000 + n as u32));
        request(&site.address, "GET", &path, &client).status
    };
    let (sent, stopping) = (AtomicUsize::new(0), AtomicBool::new(false));
    let clients = || {
        while !stopping.load(Ordering::Relaxed) {
            let status = get_banner(sent.fetch_add(1, Ordering::Relaxed));
            assert!([200, 503].contains(&status), "{status}");
        }
    };
    let statuses: Vec<u16> = thread::scope(|scope| {
        (0..120).for_each(|_| _ = scope.spawn(clients));
        wait_until("all clients have sent a request", || sent.load(Ordering::Relaxed) > 200);
        let statuses = (0..50).map(|n| site.get(&format!("/search?q={n}")).status).collect();
        stopping.store(true, Ordering::Relaxed);
        statuses
    });
    assert_eq!(statuses, [200; 50]);
    site.daemon.stop();
}

#[test]
fn names_of_strangers_stay_text_in_banners() {
    let site = Site::start(
        "client_requests_per_second_max = 10000\nclient_burst_requests = 10000\npublic_url = \"https://stats.example.org\"\n",
    );
    let stopping = Arc::new(AtomicBool::new(false));
    let (url, thread) = hostile_server(stopping.clone());
    site.sandbox.ok(["servers", "add", &url]);
    wait_until("the server is seen", || site.sandbox.list(&["--online"]).len() == 1);
    let server = site.sandbox.json(["servers", "show", &url]).remove(0);
    let mut pages = vec![format!("servers/{url}")];
    let players = server["players_listed"].as_array().expect("players").iter();
    pages.extend(players.filter_map(|player| player["player_key"].as_u64()).map(|key| format!("players/{key}")));
    assert!(pages.len() > 3, "{server}");
    for page in &pages {
        for (size, width, height) in SIZES {
            for format in ["svg", "png"] {
                check_banner(&site, &format!("/banners/{size}/{page}.{format}"), width, height);
            }
        }
    }
    let html = site.get(&format!("/servers/{url}"));
    let bbcode = format!("[url=https://stats.example.org/servers/{url}][img]https://stats.example.org/banners/wide/");
    assert!(html.text().contains(&bbcode), "{}", html.text());
    let svg = site.get(&format!("/banners/wide/servers/{url}.svg"));
    assert!(svg.text().contains("&lt;script&gt;alert('&amp;quot;')&lt;/script&gt;"), "{}", svg.text());
    stopping.store(true, Ordering::Relaxed);
    thread.join().expect("no panic");
    site.daemon.stop();
}
