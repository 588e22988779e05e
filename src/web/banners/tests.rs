//! Banners with names of strangers: well-formed, of their size, and the same each time.

use strum::IntoEnumIterator as _;

use proptest::prelude::*;
use serde_json::json;

use super::drawing::{Banner, Mark, Picture};
use super::size::Size;
use super::{font, player, png, server, svg};
use crate::model::name::decode_text;
use crate::view::{PlayerView, PublicServerDetail};
use crate::web::texts::{Language, text};

/// The first two facts have lines of their own.
fn lines(facts: &[impl ToString]) -> [Vec<String>; 3] {
    let line = |range: std::ops::Range<usize>| {
        facts.iter().skip(range.start).take(range.len()).map(ToString::to_string).collect()
    };
    [line(0..1), line(1..2), line(2..usize::MAX)]
}

fn banner(name: &str, facts: &[&str]) -> Banner {
    Banner {
        mark: Mark::Online,
        name: name.to_owned(),
        origin: "quake3://192.0.2.7:27960".to_owned(),
        facts: lines(facts),
        players: (0..150).map(|slot| (slot % 40 > 3).then(|| f64::from(slot % 17))).collect(),
    }
}

/// What all banners have, whatever their text is. Returns the lines of text.
#[track_caller]
fn check_svg(picture: &Picture) -> Vec<String> {
    let (svg, size) = (&*svg::render(picture), picture.size);
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let root = document.root_element();
    let (width, height) = size.pixels();
    assert_eq!(root.attribute("width"), Some(&*width.to_string()));
    assert_eq!(root.attribute("height"), Some(&*height.to_string()));
    // Baseline, right end and text.
    let mut lines: Vec<(f32, f32, String)> = Vec::new();
    for node in root.descendants().filter(|node| node.is_element()) {
        let tag = node.tag_name().name();
        assert!(["svg", "title", "rect", "circle", "text", "path"].contains(&tag), "{tag}: {svg}");
        for attribute in node.attributes() {
            let name = attribute.name();
            assert!(name != "style" && name != "href" && !name.starts_with("on"), "{name}: {svg}");
        }
        if tag == "text" {
            let number = |name| node.attribute(name).and_then(|text| text.parse::<f32>().ok()).expect(name);
            let (x, y, text) = (number("x"), number("y"), node.text().expect("text"));
            match lines.last_mut() {
                Some((baseline, end, line)) if *baseline == y => {
                    assert!(x > *end, "texts overlap: {svg}");
                    *end = x + number("textLength");
                    *line = format!("{line} {text}");
                }
                _ => lines.push((y, x + number("textLength"), text.to_owned())),
            }
        }
    }
    assert!(lines.iter().all(|(_, end, _)| *end <= width as f32), "{svg}");
    lines.into_iter().map(|(_, _, text)| text).collect()
}

/// Width and height of a PNG, which is decoded.
#[track_caller]
fn png_size(bytes: &[u8]) -> (u32, u32) {
    let mut reader = ::png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("complete");
    assert!(pixels.chunks(4).any(|pixel| pixel != &pixels[..4]), "something is drawn");
    (info.width, info.height)
}

#[track_caller]
fn check(banner: &Banner) {
    for size in Size::iter() {
        let picture = banner.clone().draw(size);
        check_svg(&picture);
        let image = png::render(&picture).expect("rendered");
        assert_eq!(png_size(&image), size.pixels(), "{picture:?}");
        assert_eq!(banner.clone().draw(size), picture);
        assert_eq!(png::render(&picture).expect("rendered"), image);
    }
}

#[test]
fn text_of_strangers_stays_text() {
    for name in [
        "The House",
        "",
        " ",
        "<script>alert('1')</script>\"><svg onload=\"x\">",
        "]]><!-- &amp; &#0; &x; <?xml ?>",
        "\u{202E}\u{2066}gpj.exe\u{200F}",
        "مرحبا שלום",
        "中文服务器 游戏 q3",
        "😀👩‍👩‍👧🏳️‍🌈",
        "Z\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}algo",
        "\u{FFFE}\u{FFFF}\u{0}\u{1B}[31m",
        &decode_text(b"\xff\xfe\xc3\x28 name \x80"),
        &"x<&\u{202E}".repeat(2_500),
        &"\u{301}".repeat(10_000),
        &"\u{FDFD}".repeat(100),
    ] {
        check(&banner(name, &[name, "12/16 players", name]));
    }
}

#[test]
fn long_text_is_truncated_and_lines_are_filled() {
    let facts = ["12/16 players", "a_map_with_a_long_name_12", "rank 1,204", "at 14:05 UTC"];
    let long = "A very long name of a server that fits into none of the three sizes, not even into the widest of them";
    let shown = |size| check_svg(&banner(long, &facts).draw(size));
    let origin = "quake3://192.0.2.7:27960";
    let graph = &*text!("banner-graph");
    let wide = shown(Size::Wide);
    assert_eq!(wide[1..], [origin, "12/16 players · a_map_with_a_long_name_12 · rank 1,204", graph]);
    assert!(wide[0].ends_with('…') && long.starts_with(wide[0].trim_end_matches('…')), "{wide:?}");
    let boxed = shown(Size::Box);
    assert_eq!(boxed[1..], [origin, "12/16 players", "a_map_with_a_long_name_12", "rank 1,204 · at 14:05 UTC", graph]);
    let small = shown(Size::Small);
    assert_eq!(small[1..], ["12/16 players · a_map_with…"]);
}

#[test]
fn server_shows_players_or_that_it_is_offline() {
    let server = |online: bool, last_seen_ms: Option<i64>| -> PublicServerDetail {
        serde_json::from_value(json!({
            "key": 1, "url": "quake3://192.0.2.7:27960", "class": 1, "missed": 0, "hostname": "^1The ^7House",
            "game": "baseq3", "map": "q3dm17", "online": online, "players": 7, "assumed_players": 7, "slots": 16,
            "rank": 1204, "added_ms": 0, "last_scan_ms": null, "last_seen_ms": last_seen_ms, "greylist_reason": null,
            "tags": [], "next_scan_ms": null, "total_points": 0, "players_listed": [], "series": null, "maps": [],
        }))
        .expect("a server")
    };
    let at_ms = Some(1_763_683_200_000);
    let banner = server::banner(server(true, at_ms));
    assert_eq!((banner.mark, &*banner.name), (Mark::Online, "The House"));
    assert_eq!(banner.facts, lines(&["7/16 players", "q3dm17", "rank 1,204", "at 00:00 UTC"]));
    check(&banner);
    let banner = server::banner(server(false, at_ms));
    assert_eq!(
        (banner.mark, banner.facts),
        (Mark::Offline, lines(&["offline", "seen 2025-11-21 00:00 UTC", "rank 1,204"]))
    );
    assert_eq!(server::banner(server(false, None)).facts, lines(&["offline", "never seen", "rank 1,204"]));
}

/// As the selectors of emoji are.
#[test]
fn marks_that_the_font_lacks_are_not_drawn() {
    let outline = |text: &str| font::outline(text, 0.0, 0.0, 20.0);
    assert!(outline("\u{fe0f}").is_none() && outline("\u{2764}").is_some());
    assert_eq!(outline("a\u{fe0f}b\u{20e3}"), outline("ab"));
    assert_ne!(outline("a\u{2764}b"), outline("ab"));
}

#[test]
fn player_shows_the_server_where_they_are_best() {
    let week = |week: &str, server: &str, points: i64, positions: serde_json::Value| {
        json!({"week": week, "server": server, "measured_ms": 0, "starts": 1, "time_ms": 3_600_000, "points": points,
            "clq1": 0, "clq2": 0, "elo": 1000.0, "elo_rounds": 0, "positions": positions})
    };
    let player: PlayerView = serde_json::from_value(json!({
        "player_key": 7, "game": "baseq3", "name": "Visor", "display": "^1Visor", "online_on": ["quake3://b:1"],
        "weeks": [
            week("2026-W48", "quake3://a:1", 1_000, json!({"clq1": 5, "elo": 9})),
            week("2026-W48", "quake3://b:1", 204, json!({"clq1": 4, "elo": 2, "points": 3})),
            week("2026-W48", "quake3://c:1", 0, json!({})),
            week("2026-W47", "quake3://c:1", 9_000, json!({"clq1": 1})),
        ],
        "best": [],
        "servers": [{"url": "quake3://b:1", "hostname": "^2The ^7Longest Yard"}],
    }))
    .expect("a player");
    let banner = player::banner(player.clone(), "2026-W48");
    assert_eq!((&*banner.origin, banner.mark), ("Quake III Arena on The Longest Yard", Mark::Online));
    assert_eq!(
        banner.facts,
        [vec!["#2 ELO", "#3 Points"], vec!["1,204 points", "3 h 00 min", "2026-W48"], vec!["#4 CLQ1"]]
    );
    check(&banner);
    let partial = PlayerView { weeks_partial: vec!["2026-W48".to_owned()], ..player.clone() };
    assert_eq!(player::banner(partial, "2026-W48").facts[1], ["2026-W48"], "no sums over some servers");
    let absent = PlayerView { online_on: Vec::new(), ..player };
    let banner = player::banner(absent, "2026-W49");
    assert_eq!(
        (&*banner.origin, banner.mark, banner.facts),
        ("Quake III Arena / Quake Live", Mark::Absent, lines(&["not seen this week"]))
    );
}

proptest! {
    #[test]
    fn any_text_gives_well_formed_svg(
        name in any::<String>(),
        facts in prop::collection::vec(any::<String>(), 0..5),
        players in prop::collection::vec(prop::option::of(any::<f64>()), 0..200),
    ) {
        for size in Size::iter() {
            let banner = Banner {
                mark: Mark::Offline,
                name: name.clone(),
                origin: name.clone(),
                facts: lines(&facts),
                players: players.clone(),
            };
            check_svg(&banner.draw(size));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_text_is_rendered(name in "\\PC{0,200}", fact in any::<String>()) {
        for size in Size::iter() {
            let picture = banner(&name, &[&fact]).draw(size);
            let image = png::render(&picture);
            prop_assert!(image.is_ok_and(|bytes| png_size(&bytes) == size.pixels()), "{:?}", picture);
        }
    }
}

/// Prints the time of one PNG: `cargo test --release --lib rendering_time -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn rendering_time() {
    let banner =
        banner("The House of <long> names ★ Ωμέγα", &["12/16 players", "q3dm17", "rank 1,204", "at 14:05 UTC"]);
    if let Ok(directory) = std::env::var("CLQD_BANNERS_DIR") {
        for size in Size::iter() {
            let picture = banner.clone().draw(size);
            let image = png::render(&picture).expect("rendered");
            let path = std::path::Path::new(&directory).join(size.name());
            std::fs::write(path.with_extension("svg"), svg::render(&picture)).expect("written");
            std::fs::write(path.with_extension("png"), image).expect("written");
        }
    }
    for size in Size::iter() {
        let picture = banner.clone().draw(size);
        let bytes = png::render(&picture).expect("rendered").len();
        let began = std::time::Instant::now();
        for _ in 0..100 {
            png::render(&picture).expect("rendered");
        }
        let ms = began.elapsed().as_secs_f64() * 10.0;
        println!("{}: {ms:.2} ms, {bytes} bytes; SVG {} bytes", size.name(), svg::render(&picture).len());
    }
}

#[test]
fn facts_fit_in_every_language() {
    for language in Language::iter() {
        language.within(|| {
            let players = text!("banner-players", players = "128", slots = "128");
            for fact in [text!("offline"), text!("banner-never"), text!("banner-not-seen"), players] {
                let lines = check_svg(&banner("The House", &[&fact, "ctf_a_map"]).draw(Size::Small));
                assert!(lines[1].starts_with(&*fact), "{lines:?}");
            }
            let seen = text!("banner-seen", time = "2026-11-23 14:05");
            check(&banner("The House", &[&text!("offline"), &seen, &text!("banner-rank", rank = "1,204")]));
        });
    }
}
