//! Reads the text format of `/metrics` strictly: every line must be one that OpenMetrics 1.0
//! allows, in the right order.

use std::collections::{BTreeMap, BTreeSet};

/// Samples by name and labels, and the names of those that only grow.
#[derive(Debug, Default)]
pub struct Metrics {
    pub samples: BTreeMap<String, f64>,
    counters: BTreeSet<String>,
}

impl Metrics {
    #[track_caller]
    pub fn parse(text: &str) -> Metrics {
        let mut metrics = Metrics::default();
        let mut families = BTreeSet::new();
        let (mut family, mut kind) = (String::new(), String::new());
        let body = text.strip_suffix("# EOF\n").expect("the end");
        for line in body.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').expect(line);
                assert!(is_name(name) && name.starts_with("clqd_") && help.len() > 5, "{line}");
                assert!(families.insert(name.to_owned()), "{name} is there twice");
                family = name.to_owned();
                kind.clear();
            } else if let Some(typed) = line.strip_prefix("# TYPE ") {
                let (name, of_family) = typed.split_once(' ').expect(line);
                assert!(name == family && kind.is_empty(), "{line}");
                assert!(["counter", "gauge", "histogram", "summary"].contains(&of_family), "{line}");
                kind = of_family.to_owned();
            } else {
                metrics.add(line, &family, &kind);
            }
        }
        metrics
    }

    fn add(&mut self, line: &str, family: &str, kind: &str) {
        let (key, value) = line.rsplit_once(' ').expect(line);
        let name = key.split('{').next().expect(line);
        if let Some(labels) = key.strip_prefix(name).filter(|labels| !labels.is_empty()) {
            let inner = labels.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).expect(line);
            for label in inner.split("\",").filter(|label| !label.is_empty()) {
                let (label, value) = label.split_once("=\"").expect(line);
                assert!(is_name(label) && !value.trim_end_matches('"').contains('"'), "{line}");
            }
        }
        let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{line} is not of {family}"));
        let allowed: &[&str] = match kind {
            "counter" => &["_total"],
            "gauge" | "summary" => &[""],
            "histogram" => &["_sum", "_count", "_bucket"],
            _ => panic!("{line} has no type"),
        };
        assert!(allowed.contains(&suffix), "{line}");
        let value: f64 = value.parse().expect(line);
        assert!(value.is_finite(), "{line}");
        if !["gauge", "summary"].contains(&kind) {
            assert!(value >= 0.0, "{line}");
            self.counters.insert(key.to_owned());
        }
        assert!(self.samples.insert(key.to_owned(), value).is_none(), "{key} is there twice");
    }

    #[track_caller]
    pub fn value(&self, key: &str) -> f64 {
        *self.samples.get(key).unwrap_or_else(|| panic!("no {key} in {:?}", self.samples.keys()))
    }

    /// The sum of the samples with this name.
    pub fn sum(&self, name: &str) -> f64 {
        let of_name = self.samples.iter().filter(|(key, _)| key.split('{').next() == Some(name));
        of_name.map(|(_, value)| value).sum()
    }

    /// Checks that no counter is less than before.
    #[track_caller]
    pub fn assert_continue(&self, before: &Metrics) {
        for counter in &before.counters {
            assert!(self.value(counter) >= before.value(counter), "{counter} has decreased");
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}
