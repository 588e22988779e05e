//! The population: names and skills of all persons who play in a fleet.
//!
//! Names are like those on real servers: colour codes, clan tags, Latin-1 and other
//! scripts, names that many persons have, names that clqd ignores. A person may be on
//! two servers at the same time, but only once on one server.

use super::rng::{RngExt, SplitMix64, hash_parts, unit};
use crate::model::name::{ColourCodes, strip_colours};

/// A person of the population, or a bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Person(pub u32);

const BOT_BIT: u32 = 1 << 31;
const BOTS: &[&str] = &["Sarge", "Visor", "Klesk", "Major", "Doom", "Bones", "Orbb", "Xaero", "Uriel", "Hunter"];

impl Person {
    /// A bot, identified by its number.
    pub fn bot(number: u32) -> Person {
        Person(BOT_BIT | (number % BOTS.len() as u32))
    }

    pub fn is_bot(self) -> bool {
        self.0 & BOT_BIT != 0
    }
}

/// Maximum number of bots on a server: each has a different name.
pub const BOTS_MAX: u32 = BOTS.len() as u32;

const FIRST: &[&str] = &[
    "Dark", "Mad", "Nitro", "Shadow", "Cyber", "Iron", "Lazy", "Super", "Turbo", "Ghost", "Frag", "Rail", "Killa",
    "Silent", "Lucky", "Pixel", "Grim", "Toxic", "Sonic", "Blue",
];
const SECOND: &[&str] = &[
    "Wolf", "Hunter", "Lord", "Rider", "Monk", "Cat", "Fox", "Storm", "Blade", "Bunny", "Tank", "Jumper", "Angel",
    "Duck", "Maker", "Snake", "Viking", "Doc", "Goat", "Reaper",
];
const LATIN: &[&str] =
    &["Jürgen", "Åsa", "niño", "François", "Zoë", "Þór", "João", "Müller", "Søren", "café", "Señor Frag", "Ærø"];
const UNICODE: &[&str] = &[
    "Привет",
    "玩家一号",
    "プレイヤー",
    "Łukasz",
    "Ωmega",
    "한국인",
    "🔥fire",
    "e\u{301}toile",
    "zero\u{200b}width",
    "سلام",
    "Škoda",
];
const COMMON: &[&str] = &[
    "noob", "Sniper", "John", "killer", "Max", "asdf", "xXx", "Visor", "Sarge", "Klesk", "Anon", "test", "Neo",
    "Fragger",
];
const IGNORED: &[&str] =
    &["UnnamedPlayer", "UnnamedPlayer", "UnnamedPlayer", "unnamed", "Player", "player", "unconnected"];
const CLANS: &[&str] = &["[EU]", "|MAD|", "=K=", "*fn*", "-42-", "{ESL}", ".oO", "<AoD>"];

/// All names, concatenated.
#[derive(Debug)]
pub struct Population {
    seed: u64,
    quake: NameArena,
    plain: NameArena,
}

#[derive(Debug, Default)]
struct NameArena {
    text: String,
    ends: Vec<u32>,
}

impl NameArena {
    fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len() as u32);
    }

    fn at(&self, index: usize) -> &str {
        let from = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.text[from..self.ends[index] as usize]
    }
}

impl Population {
    /// `size` persons, at least 1 and at most 2^26 (their names then take 2 GiB).
    pub fn new(seed: u64, size: u32) -> Population {
        let mut population = Population { seed, quake: NameArena::default(), plain: NameArena::default() };
        for person in 0..size.clamp(1, 1 << 26) {
            let quake = name_of(seed, person, size);
            population.plain.push(&strip_colours(&quake, ColourCodes::Quake3));
            population.quake.push(&quake);
        }
        population
    }

    pub fn size(&self) -> u32 {
        self.quake.ends.len() as u32
    }

    /// The name with colour codes, as Quake 3 servers show it.
    pub fn quake_name(&self, person: Person) -> &str {
        match person.is_bot() {
            true => BOTS[(person.0 & !BOT_BIT) as usize],
            false => self.quake.at(person.0 as usize),
        }
    }

    /// The name without colour codes.
    pub fn plain_name(&self, person: Person) -> &str {
        match person.is_bot() {
            true => BOTS[(person.0 & !BOT_BIT) as usize],
            false => self.plain.at(person.0 as usize),
        }
    }

    /// Scoring rate relative to an average player: 0.3 to 3.3.
    pub fn skill(&self, person: Person) -> f64 {
        let bits = hash_parts(&[self.seed, 0x5C111, u64::from(person.0)]);
        // Sum of three uniform numbers: close to a normal distribution.
        let bell = unit(bits) + unit(bits.rotate_left(21)) + unit(bits.rotate_left(42)) - 1.5;
        (bell * 0.8).exp()
    }

    /// Typical ping, ms.
    pub fn ping_ms(&self, person: Person) -> i32 {
        20 + (hash_parts(&[self.seed, 0xB16, u64::from(person.0)]) % 140) as i32
    }
}

/// In populations of all sizes most names are unique, as in one of 300,000 persons.
fn name_of(seed: u64, person: u32, size: u32) -> String {
    let rng = &mut SplitMix64::from_parts(&[seed, 0x7A3E, u64::from(person)]);
    let times = size.div_ceil(300_000) as usize;
    let kind = rng.unit();
    let base = match kind {
        k if k < 0.02 => return rng.pick(IGNORED).to_owned(),
        k if k < 0.06 => rng.pick(COMMON).to_owned(),
        k if k < 0.12 => format!("{}{}", rng.pick(LATIN), rng.below(100 * times)),
        k if k < 0.16 => format!("{}{}", rng.pick(UNICODE), rng.below(100 * times)),
        k if k < 0.40 => format!("{}{}", rng.pick(SECOND), rng.below(10_000 * times)),
        k if k < 0.45 => match if times > 1 { rng.below(times) } else { 0 } {
            0 => format!("{} the  {}", rng.pick(FIRST), rng.pick(SECOND)),
            number => format!("{} the  {}{number}", rng.pick(FIRST), rng.pick(SECOND)),
        },
        _ => format!("{}{}{}", rng.pick(FIRST), rng.pick(SECOND), rng.below(1_000 * times)),
    };
    let clan = if rng.bool(0.2) { rng.pick(CLANS) } else { "" };
    let colour = |rng: &mut SplitMix64| char::from(b'0' + rng.below(8) as u8);
    match rng.below(8) {
        0 | 1 => format!("^{}{clan}^7{base}", colour(rng)),
        2 => format!("{clan}^{}{base}", colour(rng)),
        3 => {
            // A colour code in the middle.
            let middle = base.char_indices().nth(base.chars().count() / 2).map_or(0, |(at, _)| at);
            format!("{clan}^{}{}^{}{}", colour(rng), &base[..middle], colour(rng), &base[middle..])
        }
        _ => format!("{clan}{base}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::model::name::normalise;

    #[test]
    fn names_fit_the_wire_and_are_mostly_unique() {
        let people = Population::new(3, 20_000);
        assert_eq!(people.size(), 20_000);
        let mut seen: HashMap<String, u32> = HashMap::new();
        for person in (0..20_000).map(Person) {
            let quake = people.quake_name(person);
            assert!(!quake.is_empty() && quake.len() <= 64, "{quake:?}");
            assert!(!quake.contains(['"', '\\', '\n', '\0']), "{quake:?}");
            let normal = normalise(quake, ColourCodes::Quake3);
            assert_eq!(normalise(people.plain_name(person), ColourCodes::None), normal);
            *seen.entry(normal).or_default() += 1;
            assert!((0.3..3.4).contains(&people.skill(person)));
        }
        assert!(seen["UnnamedPlayer"] > 50 && seen["noob"] > 10);
        assert!(seen.keys().any(|name| name.contains('ü')) && seen.keys().any(|name| name.contains('玩')));
        assert!(seen.values().filter(|&&count| count == 1).count() > 8_000);
    }
}
