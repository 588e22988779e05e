//! Shares of the servers that have a fault, a behaviour or a protocol, as an option of `clqd fleet`.

use std::marker::PhantomData;

use strum::VariantArray;

/// Why a list of shares is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareListError {
    #[error("{text:?}: {kind} are \"none\", \"default\", or a list such as \"{example}=0.03\"")]
    Form { text: String, kind: &'static str, example: &'static str },
    #[error("{kind}: {name:?} is unknown; there are {known}")]
    Name { name: String, kind: &'static str, known: String },
    #[error("{0:?}: a share is a number from 0 to 1, and the sum of all is at most 1")]
    Share(String),
}

/// The share of the servers with each value of `T`, each 0 to 1. The sum is at most 1. `N` is the number of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares<T, const N: usize> {
    shares: [f64; N],
    values: PhantomData<T>,
}

impl<T, const N: usize> Shares<T, N> {
    /// All are 0.
    pub const NONE: Shares<T, N> = Shares::new([0.0; N]);

    /// In the order of the values.
    pub const fn new(shares: [f64; N]) -> Shares<T, N> {
        Shares { shares, values: PhantomData }
    }
}

impl<T: Copy + PartialEq + Into<&'static str> + VariantArray, const N: usize> Shares<T, N> {
    /// The same with another share of one value.
    pub fn with(mut self, value: T, share: f64) -> Shares<T, N> {
        let at = T::VARIANTS.iter().position(|&other| other == value).expect("a variant");
        self.shares[at] = share;
        self
    }

    /// Parses `NAME=SHARE,NAME=SHARE,...`; omitted ones are 0. `kind` names the list in error messages.
    pub(super) fn parse_list(text: &str, kind: &'static str) -> Result<Shares<T, N>, ShareListError> {
        let names: [&'static str; N] = std::array::from_fn(|index| T::VARIANTS[index].into());
        let mut shares = [0.0; N];
        for item in text.split(',') {
            let form = || ShareListError::Form { text: item.to_owned(), kind, example: names[0] };
            let (name, share) = item.split_once('=').ok_or_else(form)?;
            let unknown = || ShareListError::Name { name: name.to_owned(), kind, known: names.join(", ") };
            let at = names.iter().position(|known| *known == name.trim()).ok_or_else(unknown)?;
            let share: f64 = share.trim().parse().map_err(|_| ShareListError::Share(item.to_owned()))?;
            if !(0.0..=1.0).contains(&share) {
                return Err(ShareListError::Share(item.to_owned()));
            }
            shares[at] = share;
        }
        // Sums of decimal fractions may be slightly above 1.
        if shares.iter().sum::<f64>() > 1.000_001 {
            return Err(ShareListError::Share(text.to_owned()));
        }
        Ok(Shares::new(shares))
    }

    /// The value in whose share a number of `0.0..1.0` falls, if it falls in one.
    pub(super) fn value_at(&self, number: f64) -> Option<T> {
        let mut remaining = number;
        let chosen = T::VARIANTS.iter().zip(&self.shares).find(|&(_, share)| {
            remaining -= share;
            remaining < 0.0
        });
        chosen.map(|(&value, _)| value)
    }
}
