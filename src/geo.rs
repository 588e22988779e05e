//! In which country an address is, by a database in MaxMind's format: GeoLite2, DB-IP and others have it. It is set once, at
//! the start; without it no address has a country.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{OnceLock, PoisonError, RwLock};

use maxminddb::Reader;
use serde::Deserialize;

/// A country.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Country {
    /// ISO 3166-1: two capital letters.
    pub code: String,
    /// In English; the code, if the database has no names.
    pub name: String,
}

/// The name of a country for those who read `language` (ISO 639-1), if the database has it. Only countries that were the answer
/// of [`country_of_url`] have one.
pub fn name_in(code: &str, language: &str) -> Option<String> {
    COUNTRIES.get()?.name_in(code, language)
}

impl Country {
    /// The flag, as two characters that fonts show as one.
    pub fn flag(&self) -> String {
        let indicator = |letter: u8| char::from_u32(0x1F1E6 + u32::from(letter - b'A'));
        self.code.bytes().filter_map(indicator).collect()
    }
}

/// Whether it may be the code of a country.
fn is_code(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The database.
#[derive(Debug)]
pub struct Countries {
    reader: Reader<Vec<u8>>,
    /// By code, the names of the countries of the answers: reading them each time would take longer than all else of an answer.
    names: RwLock<BTreeMap<String, Names>>,
}

/// By language, such as `de` and `pt-BR`.
type Names = BTreeMap<String, String>;

static COUNTRIES: OnceLock<Countries> = OnceLock::new();

/// The database is used from now on. Only the first call has an effect.
pub fn set(countries: Countries) {
    _ = COUNTRIES.set(countries);
}

/// Whether there is a database.
pub fn is_set() -> bool {
    COUNTRIES.get().is_some()
}

/// The country of a server, if its URL has an address. Names of hosts are not resolved.
pub fn country_of_url(url: &str) -> Option<Country> {
    let countries = COUNTRIES.get()?;
    countries.country(address_of_url(url)?)
}

fn address_of_url(url: &str) -> Option<IpAddr> {
    let (_, rest) = url.split_once("://")?;
    let host = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => rest.split([':', '/']).next()?,
    };
    host.parse().ok()
}

impl Countries {
    /// The bytes of a file. All of it is checked.
    pub fn parse(bytes: Vec<u8>) -> Result<Countries, String> {
        let reader = Reader::from_source(bytes).map_err(|error| error.to_string())?;
        reader.verify().map_err(|error| error.to_string())?;
        Ok(Countries { reader, names: RwLock::default() })
    }

    pub fn country(&self, address: IpAddr) -> Option<Country> {
        #[derive(Deserialize)]
        struct Place<T> {
            country: Option<T>,
            registered_country: Option<T>,
        }
        #[derive(Deserialize)]
        struct Coded {
            iso_code: Option<String>,
        }
        #[derive(Deserialize)]
        struct Named {
            names: Option<Names>,
        }
        let found = self.reader.lookup(address.to_canonical()).ok()?;
        let place: Place<Coded> = found.decode().ok()??;
        let code = place.country.or(place.registered_country)?.iso_code.filter(|code| is_code(code))?;
        if !self.names.read().unwrap_or_else(PoisonError::into_inner).contains_key(&code) {
            let place: Place<Named> = found.decode().ok()??;
            let names = place.country.or(place.registered_country).and_then(|named| named.names).unwrap_or_default();
            // One without names may have some beside another network.
            if !names.is_empty() {
                self.names.write().unwrap_or_else(PoisonError::into_inner).insert(code.clone(), names);
            }
        }
        let name = self.name_in(&code, "en").unwrap_or_else(|| code.clone());
        Some(Country { code, name })
    }

    fn name_in(&self, code: &str, language: &str) -> Option<String> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        // Databases have the Portuguese of Brazil.
        let is_of = |key: &str| key.strip_prefix(language).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        names.get(code)?.iter().find(|(key, _)| is_of(key)).map(|(_, name)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_countries_of_the_database() {
        let bytes = include_bytes!("../tests/fixtures/countries.mmdb");
        let countries = Countries::parse(bytes.to_vec()).unwrap();
        let country = |address: &str| countries.country(address.parse().unwrap());
        let germany = Country { code: "DE".to_owned(), name: "Germany".to_owned() };
        assert_eq!(country("192.0.2.7"), Some(germany.clone()));
        assert_eq!(country("::ffff:192.0.2.7"), Some(germany.clone()));
        assert_eq!(country("2001:db8::7").map(|country| country.code).as_deref(), Some("FR"));
        assert_eq!(country("198.51.100.1").map(|country| country.name).as_deref(), Some("PL"), "it has no names");
        let names = [("DE", "de"), ("DE", "en"), ("DE", "pt"), ("DE", "pl"), ("PL", "en"), ("SE", "en")];
        assert_eq!(
            names.map(|(code, language)| countries.name_in(code, language)),
            [Some("Deutschland"), Some("Germany"), Some("Alemanha"), None, None, None]
                .map(|name| name.map(str::to_owned)),
            "nobody has asked for Sweden"
        );
        assert_eq!((country("203.0.113.1"), country("203.0.113.130")), (None, None), "none, and no code");
        assert_eq!(germany.flag(), "🇩🇪");
        for length in (0..bytes.len()).step_by(97) {
            assert!(Countries::parse(bytes[..length].to_vec()).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn addresses_are_those_of_urls() {
        for (url, address) in [
            ("quake3://192.0.2.7:27960", Some("192.0.2.7")),
            ("source://[2001:db8::1]:27015", Some("2001:db8::1")),
            ("source://games.example:27015", None),
            ("192.0.2.7:27960", None),
        ] {
            assert_eq!(address_of_url(url), address.map(|address| address.parse().unwrap()), "{url}");
        }
        assert_eq!((is_code("DE"), is_code("de"), is_code("DEU")), (true, false, false));
    }
}
