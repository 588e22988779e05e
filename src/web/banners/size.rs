//! The sizes and formats of banners, and their paths.

use strum::IntoEnumIterator;

use crate::web::problem::Problem;
use crate::web::texts::language::Chosen;

/// A size of a banner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(in crate::web) enum Size {
    /// The full banner of advertisements, which most forums allow in signatures.
    Wide,
    /// For the first post of a thread, and for the margin of a website.
    Box,
    /// The smallest in which a name and a map are readable.
    Small,
    /// The picture of a link in a chat or a social network.
    Card,
}

impl Size {
    /// The sizes for forums and websites.
    pub const EMBEDDED: [Size; 3] = [Size::Wide, Size::Box, Size::Small];

    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Width and height, pixels.
    pub fn pixels(self) -> (u32, u32) {
        match self {
            Size::Wide => (468, 60),
            Size::Box => (350, 100),
            Size::Small => (160, 40),
            Size::Card => (1200, 630),
        }
    }

    pub fn parse(name: &str) -> Result<Size, Problem> {
        Size::iter().find(|size| size.name() == name).ok_or_else(|| {
            let names = Size::iter().map(Size::name).collect::<Vec<_>>().join(", ");
            Problem::not_found(format!("there is no banner of size {name}; sizes are {names}"))
        })
    }
}

/// The format of a banner, which is the suffix of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(in crate::web) enum Format {
    Png,
    Svg,
}

impl Format {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Splits the last part of a path: the server or player, and the format.
    pub fn split(file: &str) -> Result<(&str, Format), Problem> {
        let (subject, suffix) = file.rsplit_once('.').unwrap_or((file, ""));
        let no_banner = format!("{file} is not a banner; the path of one ends in .png or .svg");
        Ok((subject, suffix.parse().map_err(|_| Problem::not_found(no_banner))?))
    }
}

/// The path of the banner of the server or player with this page, in English.
pub(super) fn path(page: &str, size: Size, format: Format) -> String {
    format!("/banners/{}{page}.{}", size.name(), format.name())
}

/// The path of the banner, in the language of the page that is being written.
pub(in crate::web) fn path_in_language(page: &str, size: Size, format: Format) -> String {
    format!("{}{}", Chosen::of_visitor().prefix_of_images(), path(page, size, format))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::problem::ProblemKind;

    #[test]
    fn path_has_size_and_format() {
        let page = "/servers/quake3://192.0.2.7:27960";
        assert_eq!(path(page, Size::Wide, Format::Png), "/banners/wide/servers/quake3://192.0.2.7:27960.png");
        for format in [Format::Png, Format::Svg] {
            let file = format!("source://a.example:1.{}", format.name());
            assert_eq!(Format::split(&file), Ok(("source://a.example:1", format)));
        }
        for file in ["source://192.0.2.7:1", "7", "", "7.", "7.gif", "7.PNG", ".png7"] {
            assert_eq!(Format::split(file).map_err(|problem| problem.kind), Err(ProblemKind::NotFound), "{file}");
        }
        for size in Size::iter() {
            assert_eq!(Size::parse(size.name()), Ok(size));
        }
        assert!(Size::parse("1000x1000").is_err_and(|problem| problem.detail.ends_with("wide, box, small, card")));
    }
}
