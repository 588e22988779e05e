//! The texts of the website: one file for each language, in the format of Project Fluent.
//!
//! `text!("home-busiest")` is the text of that name in the visitor's language, as a string, and
//! `rich_text!("found-in", game = html! { ... })` is HTML with parts that are HTML. Both take strings and numbers as
//! `$name` of the text, too; numbers are grouped as the language groups them. A test compares the names that the
//! code uses with those of each file.
//!
//! - [`language`]: which language a visitor gets.

pub(super) mod language;

use std::borrow::Cow;
use std::sync::LazyLock;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use maud::{Markup, PreEscaped, Render};
use strum::IntoEnumIterator;

pub(super) use self::language::Language;

/// A text of the visitor's language as a string: `text!("name", count = 3)`.
macro_rules! text {
    ($id:literal) => {
        $crate::web::texts::written($id)
    };
    ($id:literal, $($name:ident = $value:expr),+ $(,)?) => {
        $crate::web::texts::written_with($id, [$((stringify!($name), $value.into())),+])
    };
}

/// A text of the visitor's language as HTML, with parts that are HTML: `rich_text!("name", game = html! { ... })`.
macro_rules! rich_text {
    ($id:literal, $($name:ident = $value:expr),+ $(,)?) => {
        $crate::web::texts::html_with($id, [$((stringify!($name), $crate::web::texts::Part::from($value))),+])
    };
}

pub(super) use {rich_text, text};

type Bundle = FluentBundle<FluentResource>;

/// The texts, in the order of the languages.
static BUNDLES: LazyLock<Vec<Bundle>> = LazyLock::new(|| Language::iter().map(bundle).collect());

fn bundle(language: Language) -> Bundle {
    let resource = FluentResource::try_new(language.file().to_owned());
    let resource = resource.unwrap_or_else(|(_, errors)| panic!("{language:?}: {errors:?}"));
    let mut bundle = Bundle::new_concurrent(vec![language.code().parse().expect("a code of two letters")]);
    // Names of strangers are isolated by the pages.
    bundle.set_use_isolating(false);
    bundle.set_formatter(Some(|value, _| match value {
        FluentValue::Number(number) => Some(grouped(number.value as i64)),
        _ => None,
    }));
    bundle.add_resource(resource).unwrap_or_else(|errors| panic!("{language:?}: {errors:?}"));
    bundle
}

/// See [`text!`].
pub(super) fn written(id: &'static str) -> Cow<'static, str> {
    formatted(id, None)
}

/// See [`text!`].
pub(super) fn written_with<const N: usize>(
    id: &'static str,
    values: [(&'static str, FluentValue<'_>); N],
) -> Cow<'static, str> {
    let args: FluentArgs<'_> = values.into_iter().collect();
    formatted(id, Some(&args)).into_owned().into()
}

fn formatted<'a>(id: &'static str, args: Option<&'a FluentArgs<'_>>) -> Cow<'a, str> {
    let bundle = &BUNDLES[Language::of_visitor() as usize];
    // A test ensures that every language has every text.
    let Some(pattern) = bundle.get_message(id).and_then(|message| message.value()) else { return id.into() };
    bundle.format_pattern(pattern, args, &mut Vec::new())
}

/// What a text contains for a `$name`.
pub(super) enum Part<'a> {
    Value(FluentValue<'a>),
    Html(Markup),
}

impl From<Markup> for Part<'_> {
    fn from(html: Markup) -> Self {
        Part::Html(html)
    }
}

macro_rules! impl_part_from {
    ($($value:ty),+) => { $(impl<'a> From<$value> for Part<'a> {
        fn from(value: $value) -> Self {
            Part::Value(value.into())
        }
    })+ };
}

impl_part_from!(&'a str, String, Cow<'a, str>, u32, u64, usize, i64);

/// Where an HTML part is put, until the text around it has been escaped: private-use characters, which are removed from
/// the other values.
const MARK: (char, char) = ('\u{E000}', '\u{E001}');

/// See [`rich_text!`].
pub(super) fn html_with<const N: usize>(id: &'static str, parts: [(&'static str, Part<'_>); N]) -> Markup {
    let mut args = FluentArgs::with_capacity(N);
    let mut html = Vec::new();
    for (name, part) in parts {
        let value = match part {
            Part::Html(part) => {
                html.push(part);
                FluentValue::from(format!("{}{}{}", MARK.0, html.len() - 1, MARK.1))
            }
            Part::Value(FluentValue::String(text)) => FluentValue::from(text.replace([MARK.0, MARK.1], "")),
            Part::Value(value) => value,
        };
        args.set(name, value);
    }
    let escaped = formatted(id, Some(&args)).render().into_string();
    let mut text = String::with_capacity(escaped.len());
    for (n, piece) in escaped.split(MARK.0).enumerate() {
        let (number, rest) = if n == 0 { ("", piece) } else { piece.split_once(MARK.1).unwrap_or(("", piece)) };
        if let Some(part) = number.parse().ok().and_then(|number: usize| html.get(number)) {
            text.push_str(&part.0);
        }
        text.push_str(rest);
    }
    PreEscaped(text)
}

/// A whole number as the visitor's language writes it, such as `-1,204`.
pub(super) fn grouped(number: i64) -> String {
    let separator = Language::of_visitor().group_separator();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// A number with a decimal point as the visitor's language writes it, such as `0.25`.
pub(super) fn decimal(number: String) -> String {
    match Language::of_visitor().decimal_mark() {
        '.' => number,
        mark => number.replace('.', mark.encode_utf8(&mut [0; 4])),
    }
}

#[cfg(test)]
mod tests;
