//! Shares of the servers that have a fault or a behaviour, as an option of `clqd fleet`.

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

/// Parses `NAME=SHARE,NAME=SHARE,...`. Returns the shares in the order of `names`; omitted
/// ones are 0. `kind` names the list in error messages.
pub(super) fn parse_shares<const N: usize>(
    text: &str,
    kind: &'static str,
    names: [&'static str; N],
) -> Result<[f64; N], ShareListError> {
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
    Ok(shares)
}

/// The value in whose share a number of `0.0..1.0` falls, if it falls in one.
pub(super) fn pick_by_share<T: Copy>(number: f64, values: &[T], shares: &[f64]) -> Option<T> {
    let mut remaining = number;
    let chosen = values.iter().zip(shares).find(|&(_, share)| {
        remaining -= share;
        remaining < 0.0
    });
    chosen.map(|(&value, _)| value)
}
