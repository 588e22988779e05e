//! How many scans a server with players may have.

use serde::{Deserialize, Serialize};

/// Mean number of scans in an interval of class 1, in hundredths: 0, or [`ScanBudget::MIN`] to [`ScanBudget::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct ScanBudget(u16);

impl ScanBudget {
    /// The least and the largest budget with which scans are not on a fixed grid.
    pub const MIN: f64 = 0.75;
    pub const MAX: f64 = 6.0;

    pub fn scans(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    pub fn parse(text: &str) -> Result<ScanBudget, String> {
        text.parse::<f64>().map_err(|_| format!("{text:?} is not a number")).and_then(ScanBudget::try_from)
    }
}

impl From<ScanBudget> for f64 {
    fn from(budget: ScanBudget) -> f64 {
        budget.scans()
    }
}

impl TryFrom<f64> for ScanBudget {
    type Error = String;

    fn try_from(scans: f64) -> Result<ScanBudget, String> {
        if scans == 0.0 || (ScanBudget::MIN..=ScanBudget::MAX).contains(&scans) {
            Ok(ScanBudget((scans * 100.0).round() as u16))
        } else {
            Err(format!(
                "{scans} is no budget; expected 0 for a fixed grid, or {} to {}",
                ScanBudget::MIN,
                ScanBudget::MAX
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_read_and_shown() {
        for (text, scans) in [("0", 0.0), ("0.75", 0.75), ("1.15", 1.15), ("6", 6.0), ("1.999", 2.0)] {
            let budget = ScanBudget::parse(text).unwrap();
            assert_eq!(budget.scans(), scans);
            let json = serde_json::to_string(&budget).unwrap();
            assert_eq!(serde_json::from_str::<ScanBudget>(&json).unwrap(), budget);
        }
        for text in ["-1", "0.7", "6.01", "NaN", "inf", "many", ""] {
            assert!(ScanBudget::parse(text).is_err(), "{text}");
        }
    }
}
