//! Parameters in the query of a URL. In the API an unknown parameter is an error, because a
//! misspelt filter must not return everything. Pages ignore unknown parameters, because other sites
//! add parameters to shared links. The error messages are written here, because those of serde name
//! Rust types.

use std::fmt;
use std::vec;

use axum::extract::Query;
use axum::http::Uri;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{ObjectBuilder, RefOr, Type};
use utoipa::{PartialSchema, ToSchema};

use super::limits::{ROWS_PER_PAGE_DEFAULT, ROWS_PER_PAGE_MAX};
use super::problem::Problem;
use crate::limits::{NAME_BYTES_MAX, SERVER_URL_BYTES_MAX};
use crate::model::row::Ranking;
use crate::model::server_page::{CURSOR_CHARS_MAX, ServerCursor, ServerOrder};
use crate::model::url::ServerUrl;
use crate::nearest::nearest;

/// Describes the values of a type by this schema.
macro_rules! describe {
    ($type:ty, $schema:expr) => {
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $schema
            }
        }

        impl utoipa::ToSchema for $type {}
    };
}
pub(super) use describe;

/// Parses the query of a URI.
pub(super) fn parse<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    // Bytes that are not UTF-8 become U+FFFD, so no query fails here.
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|_| Problem::bad_request("the query is not of the form name=value&name=value"))?;
    let parameters = Parameters { pairs: pairs.into_iter(), value: None };
    let parsed = T::deserialize(MapAccessDeserializer::new(parameters));
    parsed.map_err(|ParameterError(detail)| Problem::bad_request(detail))
}

/// Refuses any parameter.
pub(super) fn no_parameters(uri: &Uri) -> Result<(), Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct None {}
    parse::<None>(uri).map(|None {}| ())
}

/// Names and values of a query.
struct Parameters {
    pairs: vec::IntoIter<(String, String)>,
    /// The name that was read last, and its value.
    value: Option<(String, String)>,
}

/// The value of a parameter.
struct Text<'t>(&'t str);

/// What is wrong with a query, for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ParameterError(String);

impl de::Error for ParameterError {
    fn custom<T: fmt::Display>(message: T) -> ParameterError {
        ParameterError(message.to_string())
    }

    fn unknown_field(name: &str, expected: &'static [&'static str]) -> ParameterError {
        ParameterError(match expected {
            [] => format!("there is no parameter {name:?}, nor any other"),
            _ => format!("there is no parameter {name:?}; {}", one_of_names(name, expected)),
        })
    }

    fn unknown_variant(text: &str, expected: &'static [&'static str]) -> ParameterError {
        ParameterError(one_of_names(text, expected))
    }

    fn missing_field(name: &'static str) -> ParameterError {
        ParameterError(format!("the parameter {name} is missing"))
    }

    fn duplicate_field(name: &'static str) -> ParameterError {
        ParameterError(format!("the parameter {name} is there twice"))
    }
}

impl<'de> MapAccess<'de> for Parameters {
    type Error = ParameterError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ParameterError> {
        self.value = self.pairs.next();
        let name = self.value.as_ref().map(|(name, _)| StrDeserializer::new(name));
        name.map(|name| seed.deserialize(name)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ParameterError> {
        let (name, text) = self.value.take().expect("a value is read after its name");
        let wrong = |ParameterError(expected)| ParameterError(format!("{name} is {text:?}; {expected}"));
        seed.deserialize(Text(&text)).map_err(wrong)
    }
}

impl<'de> Deserializer<'de> for Text<'_> {
    type Error = ParameterError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParameterError> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParameterError> {
        visitor.visit_some(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParameterError> {
        let value = self.0.parse().map_err(|_| ParameterError("expected true or false".to_owned()))?;
        visitor.visit_bool(value)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ParameterError> {
        visitor.visit_enum(StrDeserializer::new(self.0))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ParameterError> {
        visitor.visit_newtype_struct(self)
    }

    // Numbers are of the type `Number`, which knows their range.
    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number<const MIN: i64, const MAX: i64>(i64);

impl<const MIN: i64, const MAX: i64> Number<MIN, MAX> {
    /// The number in a type that can represent the whole range.
    pub fn to<N: TryFrom<i64>>(self) -> N {
        N::try_from(self.0).unwrap_or_else(|_| panic!("{MIN} to {MAX} exceeds the type"))
    }
}

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for Number<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = String::deserialize(deserializer)?.parse().ok().filter(|number| (MIN..=MAX).contains(number));
        number.map(Number).ok_or_else(|| de::Error::custom(format!("expected {MIN} to {MAX}")))
    }
}

impl<const MIN: i64, const MAX: i64> PartialSchema for Number<MIN, MAX> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(MIN)).maximum(Some(MAX)).into()
    }
}

impl<const MIN: i64, const MAX: i64> ToSchema for Number<MIN, MAX> {}

/// A position on a board.
pub(super) type Position = Number<1, { u32::MAX as i64 }>;

/// The number of a player.
pub(super) type PlayerKey = Number<0, { u32::MAX as i64 }>;

/// Rows to leave out.
pub(super) type Skip = Number<0, { u32::MAX as i64 }>;

/// The number of rows of a page.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct RowCount(Number<1, { ROWS_PER_PAGE_MAX as i64 }>);

impl RowCount {
    /// The number; without the parameter, the default.
    pub fn of(parameter: Option<RowCount>) -> u32 {
        parameter.map_or(ROWS_PER_PAGE_DEFAULT, |RowCount(count)| count.to())
    }
}

describe!(RowCount, {
    let mut schema = Number::<1, { ROWS_PER_PAGE_MAX as i64 }>::schema();
    if let RefOr::T(Schema::Object(number)) = &mut schema {
        number.default = Some(ROWS_PER_PAGE_DEFAULT.into());
    }
    schema
});

/// The description of a parameter that is one of some names.
pub(super) fn names_schema<const N: usize>(names: [&'static str; N], default: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).default(Some(default.into())).into()
}

/// A string that may be a name. Longer strings are refused, because no name is longer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Name(pub String);

/// In characters, as descriptions of strings count. No name has more characters than bytes.
pub(super) const NAME_CHARS_MAX: usize = NAME_BYTES_MAX;

impl Name {
    /// The error says what is wrong with the string.
    fn new(text: String) -> Result<Name, String> {
        match text.chars().count() {
            0..=NAME_CHARS_MAX => Ok(Name(text)),
            chars => Err(format!("it has {chars} characters, but names have at most {NAME_CHARS_MAX}")),
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        Name::new(String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

describe!(Name, ObjectBuilder::new().schema_type(Type::String).max_length(Some(NAME_CHARS_MAX)).into());

/// The code of a country (ISO 3166-1).
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct CountryCode(pub String);

impl TryFrom<String> for CountryCode {
    type Error = String;

    fn try_from(code: String) -> Result<CountryCode, String> {
        match code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            true => Ok(CountryCode(code)),
            false => Err(format!("{code:?} is no code of a country: two letters, such as DE")),
        }
    }
}

describe!(CountryCode, pattern("^[A-Za-z]{2}$", 2));

/// The form of strings that a parameter accepts, for its description.
fn pattern(pattern: &str, chars_max: usize) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).max_length(Some(chars_max)).into()
}

/// The description of the URL of a server. A URL without a port is accepted, too.
pub(super) struct Url;

describe!(Url, {
    let port = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";
    let byte = "([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])";
    let name = "[0-9.]*[A-Za-z_-][A-Za-z0-9._-]*";
    let ipv6 = ipv6_pattern();
    let host = format!("({name}|({byte}\\.){{3}}{byte}|\\[{ipv6}\\])");
    pattern(&format!("^[A-Za-z][A-Za-z0-9]{{0,31}}://{host}:{port}$"), SERVER_URL_BYTES_MAX)
});

/// All groups, or `::` with some before and some after it.
fn ipv6_pattern() -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let shortened = (0..=7).map(|after| {
        let before = 7 - after;
        let before = if before == 0 { String::new() } else { format!("({group}(:{group}){{0,{}}})?", before - 1) };
        let after = if after == 0 { String::new() } else { format!("({group}(:{group}){{{}}})", after - 1) };
        format!("{before}::{after}")
    });
    let forms: Vec<String> = [format!("({group}:){{7}}{group}")].into_iter().chain(shortened).collect();
    format!("({})", forms.join("|"))
}

/// The description of a cursor of a list of servers.
pub(super) struct Cursor;

describe!(Cursor, pattern("^([A-Za-z0-9_-]{4})*([A-Za-z0-9_-]{2,3})?$", CURSOR_CHARS_MAX));

/// The description of a cursor of a board.
pub(super) struct BoardCursor;

describe!(BoardCursor, pattern("^[A-Za-z0-9_-]{30}([A-Za-z0-9_-]{37})?$", 67));

/// The description of a window or a type of windows.
pub(super) struct Window;

describe!(Window, {
    let label = "[0-9]{4}-((0[1-9]|1[0-2])(-[0-9]{2}(T[0-9]{2}Z)?)?|W[0-9]{2})";
    pattern(&format!("^(hour|day|week|month|all-time|{label}|[0-9]{{1,5}}(#[0-9]{{1,10}})?)$"), 21)
});

/// A server URL.
pub(super) fn server_url(text: &str) -> Result<ServerUrl, Problem> {
    ServerUrl::parse(text).map_err(|error| Problem::bad_request(error.to_string()))
}

/// The name in a path.
pub(super) fn name(text: String) -> Result<Name, Problem> {
    Name::new(text).map_err(|error| Problem::bad_request(format!("the name is too long: {error}")))
}

/// The key of a player.
pub(super) fn player_key(text: &str) -> Result<u32, Problem> {
    text.parse().map_err(|_| Problem::bad_request("the key of a player is a number"))
}

/// The end of the page before.
pub(super) fn server_cursor(text: &str) -> Result<ServerCursor, Problem> {
    text.parse().map_err(|error| Problem::bad_request(format!("after: {error}")))
}

/// An order of servers.
pub(super) fn server_order(text: &str) -> Result<ServerOrder, Problem> {
    one_of("order", text, ServerOrder::ALL.map(|order| (order.name(), order)))
}

/// A ranking.
pub(super) fn ranking(text: &str) -> Result<Ranking, Problem> {
    one_of("ranking", text, Ranking::ALL.map(|ranking| (ranking.name(), ranking)))
}

/// The value whose name is `text`.
pub(super) fn one_of<T>(
    parameter: &str,
    text: &str,
    values: impl IntoIterator<Item = (&'static str, T)>,
) -> Result<T, Problem> {
    let mut names = Vec::new();
    for (name, value) in values {
        if name == text {
            return Ok(value);
        }
        names.push(name);
    }
    Err(Problem::bad_request(format!("{parameter} is {text:?}; {}", one_of_names(text, &names))))
}

/// What was expected instead of `text`.
fn one_of_names(text: &str, names: &[&str]) -> String {
    match nearest(text, names.iter().copied()) {
        Some(right) => format!("did you mean {right}?"),
        None => format!("expected one of {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::window::has_form;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are of interest")]
    struct Some {
        name: Name,
        #[serde(default)]
        online: bool,
        limit: Option<RowCount>,
        at: Option<Number<0, { i64::MAX }>>,
        order: Option<ServerOrder>,
    }

    /// The pattern of a description.
    fn matches<T: PartialSchema>(text: &str) -> bool {
        let schema = serde_json::to_value(T::schema()).expect("a schema");
        jsonschema::validator_for(&schema).expect("a valid schema").is_valid(&text.into())
    }

    /// What a description allows is accepted.
    #[test]
    fn described_urls_are_those_that_are_accepted() {
        for url in [
            "quake3://192.0.2.7:27960",
            "A0://a_b-c.example:1",
            "source://1.2.3.4.5:1",
            "source://256.1.1.1:1",
            "source://a:65535",
            "source://a:65536",
            "source://a:0",
            "source://[::]:1",
            "source://[::1]:1",
            "source://[1::]:1",
            "source://[1:2:3:4:5:6:7:8]:1",
            "source://[1:2:3:4:5:6:7:8:9]:1",
            "source://[1:2:3::5:6:7:8]:1",
            "source://[1:2:3:4:5::7:8]:1",
            "source://[1::2::3]:1",
            "source://[1:2:3:4:5:6:7::]:1",
            "source://[::2:3:4:5:6:7:8]:1",
            "source://[::1:2:3:4:5:6:7:8]:1",
            "source://[12345::]:1",
            "source://[]:1",
            "source://:1",
            "source://ä:1",
            "0a://a:1",
            "://a:1",
            "a",
            "",
        ] {
            let is_accepted = ServerUrl::parse(url).is_ok();
            assert_eq!(matches::<Url>(url), is_accepted, "{url}");
        }
    }

    #[test]
    fn cursors_and_windows_are_as_described() {
        for text in ["", "AA", "AAA", "AAAA", "A", "AAAAA", "A=", "zz", "__-9"] {
            assert_eq!(matches::<Cursor>(text), text.parse::<ServerCursor>().is_ok(), "{text}");
        }
        for (text, want) in [
            ("week", true),
            ("all-time", true),
            ("2026-W47", true),
            ("2026-11", true),
            ("2026-11-21", true),
            ("2026-11-21T14Z", true),
            ("12", true),
            ("12#3", true),
            ("weeks", false),
            ("2026-W475", false),
            ("2026-47", false),
            ("2026-11-21T14", false),
            ("", false),
        ] {
            assert_eq!((matches::<Window>(text), has_form(text)), (want, want), "{text}");
        }
    }

    /// No error is a message of a library, or names a Rust type.
    #[test]
    fn errors_name_the_parameter_and_what_is_expected() {
        for (query, want) in [
            ("name=%ff&limit=500&at=9223372036854775807&order=rank&online=false", None),
            ("name=a&limit=501", Some("limit is \"501\"; expected 1 to 500")),
            ("name=a&limit=0", Some("limit is \"0\"; expected 1 to 500")),
            ("name=a&limit=x", Some("limit is \"x\"; expected 1 to 500")),
            ("name=a&limit=", Some("limit is \"\"; expected 1 to 500")),
            ("name=a&limit=99999999999999999999", Some("limit is \"99999999999999999999\"; expected 1 to 500")),
            ("name=a&at=-1", Some("at is \"-1\"; expected 0 to 9223372036854775807")),
            ("name=a&online=yes", Some("online is \"yes\"; expected true or false")),
            ("name=a&order=ranks", Some("order is \"ranks\"; did you mean rank?")),
            ("name=a&order=x", Some("order is \"x\"; expected one of added, players, rank, name")),
            ("limit=5", Some("the parameter name is missing")),
            ("name=a&name=b", Some("the parameter name is there twice")),
            ("name=a&limti=5", Some("there is no parameter \"limti\"; did you mean limit?")),
            (
                "name=a&%E2%80%AE=5",
                Some("there is no parameter \"\\u{202e}\"; expected one of name, online, limit, at, order"),
            ),
        ] {
            let uri = format!("/?{query}").parse().expect("a URI");
            let error = parse::<Some>(&uri).err().map(|problem| problem.detail);
            assert_eq!(error.as_deref(), want, "{query}");
        }
        let problem = no_parameters(&"/?x=1".parse().expect("a URI")).expect_err("a parameter");
        assert_eq!(problem.detail, "there is no parameter \"x\", nor any other");
        let long = format!("/?name={}", "a".repeat(257)).parse().expect("a URI");
        let problem = parse::<Some>(&long).expect_err("too long");
        assert!(problem.detail.ends_with("it has 257 characters, but names have at most 256"), "{}", problem.detail);
    }
}
