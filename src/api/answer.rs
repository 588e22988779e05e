//! The answers to requests: JSON lines, each an object with its `kind`.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::{DeserializeOwned, Error};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::json;

/// An answer.
pub trait Answer: Send + 'static {
    type Line: Line;

    fn lines(self) -> impl Iterator<Item = Self::Line> + Send;
}

/// A line of an answer.
pub trait Line: Sized + Send + 'static {
    /// Without the end of the line.
    fn to_json(&self) -> Vec<u8>;

    fn parse(line: &[u8]) -> Result<Self, serde_json::Error>;

    /// Adds the types of the line, and those that they contain.
    fn describe(types: &mut LineTypes);
}

/// The types of the lines of an answer.
#[derive(Default)]
pub struct LineTypes {
    /// Names of the types; a line is one of them.
    pub lines: Vec<Cow<'static, str>>,
    /// All types that are named, with their names.
    pub schemas: Vec<(String, RefOr<Schema>)>,
}

/// What has its own kind of line.
pub trait Kind: Serialize {
    /// Such as `server`.
    const KIND: &'static str;
    /// The type in the description of the API, with its kind.
    const NAME: &'static str;
}

/// An object with its kind.
#[derive(Debug, Serialize)]
pub struct Tagged<'a, T> {
    kind: &'static str,
    #[serde(flatten)]
    row: &'a T,
}

impl<'a, T: Kind> From<&'a T> for Tagged<'a, T> {
    fn from(row: &'a T) -> Tagged<'a, T> {
        Tagged { kind: T::KIND, row }
    }
}

impl<T: Kind + ToSchema> PartialSchema for Tagged<'_, T> {
    fn schema() -> RefOr<Schema> {
        let kind = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some([T::KIND]))
            .description(Some("The kind of the object."));
        AllOfBuilder::new().item(T::schema()).item(ObjectBuilder::new().property("kind", kind)).into()
    }
}

impl<T: Kind + ToSchema> ToSchema for Tagged<'_, T> {
    fn name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        T::schemas(schemas);
    }
}

impl<T: Kind + ToSchema + DeserializeOwned + Send + 'static> Line for T {
    fn to_json(&self) -> Vec<u8> {
        json::to_vec(&Tagged::from(self))
    }

    fn parse(line: &[u8]) -> Result<T, serde_json::Error> {
        if !has_kind(line, T::KIND) {
            return Err(serde_json::Error::custom(format!("a line that is not of the kind {}", T::KIND)));
        }
        serde_json::from_slice(line)
    }

    fn describe(types: &mut LineTypes) {
        types.lines.push(T::NAME.into());
        types.schemas.push((T::NAME.to_owned(), Tagged::<T>::schema()));
        T::schemas(&mut types.schemas);
    }
}

impl<T: Kind> Kind for Box<T> {
    const KIND: &'static str = T::KIND;
    const NAME: &'static str = T::NAME;
}

/// Whether a line begins with this kind, as [`Tagged`] writes it.
pub(super) fn has_kind(line: &[u8], kind: &str) -> bool {
    let rest = line.strip_prefix(b"{\"kind\":\"").and_then(|rest| rest.strip_prefix(kind.as_bytes()));
    rest.is_some_and(|rest| rest.first() == Some(&b'"'))
}

/// Says of which kind the lines of each type are, and the name of that type in the description of the API.
macro_rules! kinds {
    ($($row:ty: $kind:literal, $name:literal;)*) => { $(
        impl crate::api::answer::Kind for $row {
            const KIND: &'static str = $kind;
            const NAME: &'static str = $name;
        }
    )* };
}
pub(super) use kinds;

/// Lines of several kinds.
macro_rules! lines {
    ($($(#[$doc:meta])* $name:ident { $($kind:ident($row:ty),)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $($kind($row),)*
        }

        impl crate::api::answer::Line for $name {
            fn to_json(&self) -> Vec<u8> {
                match self {
                    $($name::$kind(row) => row.to_json(),)*
                }
            }

            fn parse(line: &[u8]) -> Result<$name, serde_json::Error> {
                $(if crate::api::answer::has_kind(line, <$row as crate::api::answer::Kind>::KIND) {
                    return <$row>::parse(line).map($name::$kind);
                })*
                Err(serde::de::Error::custom("a line of an unknown kind"))
            }

            fn describe(types: &mut crate::api::answer::LineTypes) {
                $(<$row>::describe(types);)*
            }
        }
    )* };
}
pub(super) use lines;

impl<T: Kind + ToSchema + DeserializeOwned + Send + 'static> Answer for T {
    type Line = T;

    fn lines(self) -> impl Iterator<Item = T> + Send {
        std::iter::once(self)
    }
}

impl<T: Kind + ToSchema + DeserializeOwned + Send + 'static> Answer for Vec<T> {
    type Line = T;

    fn lines(self) -> impl Iterator<Item = T> + Send {
        self.into_iter()
    }
}

impl<T: Kind + ToSchema + DeserializeOwned + Send + 'static> Answer for Option<T> {
    type Line = T;

    fn lines(self) -> impl Iterator<Item = T> + Send {
        self.into_iter()
    }
}

/// The answer to a request without a result, besides notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done;

/// No answer has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLine {}

impl Answer for Done {
    type Line = NoLine;

    fn lines(self) -> impl Iterator<Item = NoLine> + Send {
        std::iter::empty()
    }
}

impl Line for NoLine {
    fn to_json(&self) -> Vec<u8> {
        match *self {}
    }

    fn parse(_: &[u8]) -> Result<NoLine, serde_json::Error> {
        Err(serde_json::Error::custom("a line where none is expected"))
    }

    fn describe(_: &mut LineTypes) {}
}
