//! The formats of `/metrics`. The default is the text format of Prometheus. A client that accepts
//! OpenMetrics, as Prometheus does, gets that.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Version 0.0.4, which nearly all programs read.
    Prometheus,
    /// Version 1.0.
    OpenMetrics,
}

impl Format {
    /// The format that a client prefers.
    pub fn accepted_by(headers: &HeaderMap) -> Format {
        let weight = |media_type: &str| {
            let ranges = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
            let weights = ranges.flat_map(|ranges| ranges.split(',')).filter_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                parts.next().filter(|name| name.eq_ignore_ascii_case(media_type))?;
                let q = parts.find_map(|part| part.strip_prefix("q=")).unwrap_or("1");
                q.parse::<f32>().ok()
            });
            weights.fold(0.0, f32::max)
        };
        let open_metrics = weight("application/openmetrics-text");
        if open_metrics > 0.0 && open_metrics >= weight("text/plain") {
            Format::OpenMetrics
        } else {
            Format::Prometheus
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Converts the output of the registry, which is OpenMetrics without summaries, to this format.
    /// Only in the format of Prometheus the family of a counter has its suffix.
    pub fn text_of(self, encoded: &str) -> String {
        let mut text = String::with_capacity(encoded.len() + 1_024);
        let mut lines = encoded.lines().peekable();
        while let Some(line) = lines.next() {
            let help = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '));
            match (self, help, family(line)) {
                (_, _, Some((name, "gauge"))) if lines.peek().is_some_and(|sample| sample.contains("{quantile=")) => {
                    text += &format!("# TYPE {name} summary");
                }
                (Format::Prometheus, Some((name, help)), _)
                    if lines.peek().and_then(|next| family(next)).is_some_and(|(_, kind)| kind == "counter") =>
                {
                    text += &format!("# HELP {name}_total {help}");
                }
                (Format::Prometheus, _, Some((name, "counter"))) => text += &format!("# TYPE {name}_total counter"),
                (Format::Prometheus, None, None) if line == "# EOF" => continue,
                _ => text += line,
            }
            text.push('\n');
        }
        text
    }
}

/// The name and the type of a family, from the line that states them.
fn family(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("# TYPE ")?.split_once(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_the_format_that_they_prefer() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                          application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, want) in [
            (&[][..], Format::Prometheus),
            (&["*/*"], Format::Prometheus),
            (&["text/plain"], Format::Prometheus),
            (&["application/openmetrics-text"], Format::OpenMetrics),
            (&["Application/OpenMetrics-Text; version=1.0.0"], Format::OpenMetrics),
            (&["application/openmetrics-text;q=0"], Format::Prometheus),
            (&["application/openmetrics-text;q=0.5, text/plain"], Format::Prometheus),
            (&["text/plain;q=0.5", "application/openmetrics-text"], Format::OpenMetrics),
            (&[prometheus], Format::OpenMetrics),
            (&["application/openmetrics-textual"], Format::Prometheus),
        ] {
            let mut headers = HeaderMap::new();
            accept.iter().for_each(|value| _ = headers.append(ACCEPT, value.parse().expect("a header")));
            assert_eq!(Format::accepted_by(&headers), want, "{accept:?}");
        }
    }

    #[test]
    fn families_have_the_names_and_types_of_the_format() {
        let encoded = "# HELP a A counter.\n# TYPE a counter\na_total{x=\"# TYPE \"} 1\n# HELP b Lag.\n\
                       # TYPE b gauge\nb{quantile=\"0.5\"} 2\n# HELP c A gauge.\n# TYPE c gauge\nc 3\n# EOF\n";
        let summary = "# HELP b Lag.\n# TYPE b summary\nb{quantile=\"0.5\"} 2\n";
        let gauge = "# HELP c A gauge.\n# TYPE c gauge\nc 3\n";
        let counter =
            |name: &str| format!("# HELP {name} A counter.\n# TYPE {name} counter\na_total{{x=\"# TYPE \"}} 1\n");
        assert_eq!(Format::Prometheus.text_of(encoded), format!("{}{summary}{gauge}", counter("a_total")));
        assert_eq!(Format::OpenMetrics.text_of(encoded), format!("{}{summary}{gauge}# EOF\n", counter("a")));
    }
}
