//! `cargo bench --bench names`: searches in the names of `CLQD_NAMES` players (10,000,000), as the daemon keeps them in memory: what
//! they take, and how long a search takes by what is typed.

use std::time::Instant;

use clqd::state::name_index::{Chunk, NameIndex};

const FIRST: [&str; 24] = [
    "Iron",
    "Lucky",
    "Ghost",
    "Turbo",
    "Silent",
    "Mad",
    "Toxic",
    "Cyber",
    "Lazy",
    "Frag",
    "Grim",
    "Blue",
    "Nitro",
    "Shadow",
    "Super",
    "Pixel",
    "Dark",
    "Storm",
    "Rail",
    "Sonic",
    "Zoë",
    "Jürgen",
    "Снайпер",
    "名前",
];
const SECOND: [&str; 20] = [
    "Bunny", "Wolf", "Monk", "Duck", "Angel", "Maker", "Rider", "Cat", "Jumper", "Reaper", "Goat", "Snake", "Hunter",
    "Lord", "Fox", "Viking", "Tank", "Hawk", "Blade", "Killer",
];

/// The number at the end of a name. Those of the newest players are not the highest ones.
fn number(player: u32) -> u32 {
    (player / 23).wrapping_mul(2_246_822_519) % 500_000
}

/// Names as people have them: tags, one word or several, numbers at the end.
fn name(player: u32) -> String {
    let mixed = player.wrapping_mul(2_654_435_769);
    let first = FIRST[mixed as usize / 7 % FIRST.len()];
    let second = SECOND[mixed as usize / 191 % SECOND.len()];
    let number = number(player);
    match mixed >> 29 {
        0 => format!("[EU] {first} {second} {number}"),
        1 => format!("-={first}=- {number}"),
        2 => format!("{first} the {second}{number}"),
        3 => format!("*clan*{second}.{number}"),
        4 => format!("{}{number}", first.to_lowercase()),
        _ => format!("{first}{second}{number}"),
    }
}

fn main() {
    let names = std::env::var("CLQD_NAMES").map_or(10_000_000, |text| text.parse().expect("CLQD_NAMES: a number"));
    let began = Instant::now();
    let mut index = NameIndex::default();
    for number in 0..=NameIndex::number_of(names) {
        let mut chunk = Chunk::default();
        NameIndex::keys_of(number).for_each(|key| chunk.push(key, &name(key)));
        chunk.finish();
        index.put(number, chunk);
    }
    let bytes = index.bytes();
    println!(
        "{names} names: {:.1} MB, {:.1} bytes a name; built in {:.1} s",
        bytes as f64 / 1e6,
        bytes as f64 / f64::from(names),
        began.elapsed().as_secs_f64()
    );
    type Typed = (&'static str, fn(u32) -> String);
    let kinds: [Typed; 9] = [
        ("a whole name", name),
        ("the first four letters of a name", |player| name(player).chars().take(4).collect()),
        ("a common word", |player| SECOND[player as usize % SECOND.len()].to_lowercase()),
        ("two common words", |player| {
            format!("{} {}", SECOND[player as usize % SECOND.len()], FIRST[player as usize / 20 % FIRST.len()])
        }),
        ("a word and a number", |player| format!("{} {}", FIRST[player as usize % FIRST.len()], number(player))),
        ("a number", |player| number(player).to_string()),
        ("the middle of a word", |player| {
            let name = name(player);
            name.chars().skip(2).take(6).collect()
        }),
        ("one letter", |player| char::from(b'a' + (player % 26) as u8).to_string()),
        ("nothing that exists", |player| format!("qzxv{player}")),
    ];
    println!("{:36} {:>9} {:>9} {:>9} {:>7}", "what is typed", "p50 ms", "p99 ms", "max ms", "found");
    for (what, typed) in kinds {
        let (mut times, mut found) = (Vec::new(), 0);
        for search in 0..400_u32 {
            let text = typed(search.wrapping_mul(2_246_822_519) % names.max(1));
            let began = Instant::now();
            found += index.find(&text, 200).len();
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!("{what:36} {:9.2} {:9.2} {:9.2} {:7}", times[200], times[396], times[399], found / 400);
    }
}
