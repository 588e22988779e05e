//! Text as it is compared in searches: what people type need not have the case, the accents and the brackets of a name.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Letters that have no decomposition, and what people type for them.
const LETTERS: [(char, &str); 10] = [
    ('ø', "o"),
    ('ł', "l"),
    ('đ', "d"),
    ('ð', "d"),
    ('ı', "i"),
    ('ħ', "h"),
    ('ß', "ss"),
    ('æ', "ae"),
    ('œ', "oe"),
    ('þ', "th"),
];

/// How well a name matches a text, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    Equal,
    /// The name begins with the text.
    Begins,
    /// Each word begins a word of the name.
    Words,
    /// Each word is in the name.
    Inside,
}

impl Match {
    pub const ALL: [Match; 4] = [Match::Equal, Match::Begins, Match::Words, Match::Inside];
}

/// The words of a text in lower case, without accents, each behind a space but the first. Everything that is no letter
/// and no digit separates words. A text without words becomes itself, in lower case.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    match text.is_ascii() {
        true => fold_to(&mut folded, text.chars().map(|char| char.to_ascii_lowercase())),
        false => {
            fold_to(&mut folded, text.nfkd().filter(|char| !is_combining_mark(*char)).flat_map(char::to_lowercase))
        }
    }
    if folded.is_empty() { text.trim().to_lowercase().replace(['\0', ' '], "") } else { folded }
}

/// `chars` are in lower case, without accents.
fn fold_to(folded: &mut String, chars: impl Iterator<Item = char>) {
    let mut is_between = false;
    for char in chars {
        if !char.is_alphanumeric() {
            is_between = !folded.is_empty();
            continue;
        }
        if std::mem::take(&mut is_between) {
            folded.push(' ');
        }
        match LETTERS.iter().find(|(letter, _)| *letter == char) {
            Some((_, plain)) => folded.push_str(plain),
            None => folded.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_no_case_no_accents_and_no_signs() {
        for (text, want) in [
            ("Ye Olde Café de l'Arène 32", "ye olde cafe de l arene 32"),
            ("[DE]  =Iron_Bunny= ", "de iron bunny"),
            ("<AoD>Søren", "aod soren"),
            ("ŁÓDŹ straße", "lodz strasse"),
            ("ВИЗОР", "визор"),
            ("玩家", "玩家"),
            ("ｆｕｌｌ", "full"),
            ("~*~", "~*~"),
            ("", ""),
            (" \0 ", ""),
        ] {
            assert_eq!(fold(text), want, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn folding_twice_changes_nothing(text in "\\PC{0,20}") {
            let once = fold(&text);
            proptest::prop_assert!(!once.contains('\0'));
            proptest::prop_assert_eq!(fold(&once), once);
        }
    }
}
