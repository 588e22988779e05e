//! `clqd servers list`: filters, sorts and prints servers.

use std::cmp::{Ordering, Reverse};
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, ValueEnum};

use super::arguments::parse_class;
use super::not_found::why_no_server;
use crate::api::ServerFilter;
use crate::api::requests::ServersList;
use crate::cli::context::CliContext;
use crate::cli::output::Printer;
use crate::cli::output::format::group_digits;
use crate::cli::stdio::{Output, note};
use crate::model::ServerUrl;
use crate::model::server::Class;
use crate::view::ServerSummary;

const EXAMPLES: &str = "Examples:
  clqd servers list q3dm17
  clqd servers list --game baseq3 --online --order players -n 10
  clqd servers list --greylisted";

/// List the servers that match all options
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListArgs {
    /// Part of the URL, host name or map, regardless of case
    text: Option<String>,
    /// Scan class, 1 to 7
    #[arg(long, value_parser = parse_class)]
    class: Option<Class>,
    /// Game, such as baseq3
    #[arg(long)]
    game: Option<String>,
    /// Map, such as q3dm6
    #[arg(long)]
    map: Option<String>,
    /// Only servers with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Country, such as DE (needs geo.database)
    #[arg(long, value_name = "CODE")]
    country: Option<String>,
    /// Only servers that answer now
    #[arg(long)]
    online: bool,
    /// Only servers to which screening applied within 7 days
    #[arg(long)]
    screened: bool,
    /// Only servers on the greylist
    #[arg(long)]
    greylisted: bool,
    /// Only servers that were removed
    #[arg(long)]
    removed: bool,
    /// url (default), class, players, rank, name or seen
    #[arg(long, alias = "sort", value_enum, default_value_t, hide_default_value = true, hide_possible_values = true)]
    order: ListOrder,
    /// Most servers [default: all]
    #[arg(short = 'n', long, alias = "limit", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ListOrder {
    /// By URL; numbers in URLs are compared as numbers
    #[default]
    Url,
    /// Most often scanned first
    Class,
    /// Most players first
    Players,
    /// Best rank of the last week first
    Rank,
    /// Host name, regardless of case
    Name,
    /// Last seen first
    Seen,
}

pub fn run(args: ListArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let ListArgs { text, class, game, map, tag, country, online, screened, greylisted, removed, order, count } = args;
    let only = |flag: bool| flag.then_some(true);
    let filter = ServerFilter {
        class,
        game,
        map,
        tag,
        online: only(online),
        screened: only(screened),
        greylisted: only(greylisted),
        removed: only(removed),
        country,
        text,
    };
    let mut source = app.daemon_or_state()?;
    let mut servers = source.lines(&ServersList { filter: filter.clone() })?;
    sort(&mut servers, order);
    let all = servers.len();
    servers.truncate(count.map_or(all, |count| count as usize));
    let shown = servers.len();
    let mut printer = Printer::new(app.json(), Output::ending());
    if greylisted {
        printer = printer.of_greylist();
    }
    servers.into_iter().try_for_each(|server| printer.line(server))?;
    printer.finish()?;
    if all == 0 {
        let why = why_no_server(&filter, &mut source).map_or_else(String::new, |why| format!("; {why}"));
        note(format_args!("clqd: no server matches{why}"));
    } else if shown < all {
        note(format_args!("clqd: {} of {} servers", group_digits(shown as u64), group_digits(all as u64)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The servers that have a tag now. Error: none has.
pub fn urls_of_tag(tag: String, app: &CliContext) -> anyhow::Result<Vec<ServerUrl>> {
    let mut urls = Vec::new();
    app.read(&ServersList { filter: ServerFilter { tag: Some(tag.clone()), ..ServerFilter::default() } }, |server| {
        urls.push(server.public.url);
        Ok(())
    })?;
    ensure!(!urls.is_empty(), "no server has the tag {tag}; `clqd servers tags` lists all tags");
    urls.sort_by(|a, b| compare_numbers(a, b));
    Ok(urls.iter().filter_map(|url| ServerUrl::parse(url).ok()).collect())
}

/// Sorts servers; equal ones by URL.
fn sort(servers: &mut [ServerSummary], order: ListOrder) {
    servers.sort_by(|a, b| compare_numbers(&a.public.url, &b.public.url));
    match order {
        ListOrder::Url => {}
        ListOrder::Class => servers.sort_by_key(|server| server.public.class),
        ListOrder::Players => {
            servers.sort_by_key(|server| Reverse((server.public.online, server.public.believed_players())))
        }
        ListOrder::Rank => servers.sort_by_key(|server| server.public.rank.unwrap_or(u32::MAX)),
        ListOrder::Name => {
            servers.sort_by_cached_key(|server| {
                (server.public.hostname.is_empty(), server.public.hostname.to_lowercase())
            });
        }
        ListOrder::Seen => servers.sort_by_key(|server| Reverse(server.public.last_seen_ms)),
    }
}

/// Compares strings; numbers in them are compared by value, so 10.0.0.9 is before 10.0.0.10.
fn compare_numbers(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        let [digits_a, digits_b] = [a, b].map(|text| text.iter().take_while(|byte| byte.is_ascii_digit()).count());
        let order = if digits_a > 0 && digits_b > 0 {
            let ((number_a, rest_a), (number_b, rest_b)) = (a.split_at(digits_a), b.split_at(digits_b));
            (a, b) = (rest_a, rest_b);
            let [value_a, value_b] = [number_a, number_b].map(without_zeros);
            value_a.len().cmp(&value_b.len()).then_with(|| value_a.cmp(value_b))
        } else {
            let (Some((first_a, rest_a)), Some((first_b, rest_b))) = (a.split_first(), b.split_first()) else {
                return a.len().cmp(&b.len());
            };
            (a, b) = (rest_a, rest_b);
            first_a.cmp(first_b)
        };
        if order.is_ne() {
            return order;
        }
    }
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    &digits[digits.iter().take_while(|&&digit| digit == b'0').count()..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::PublicServer;

    #[test]
    fn numbers_in_urls_compare_as_numbers() {
        let sorted = [
            "quake3://10.0.0.9:27960",
            "quake3://10.0.0.10:1000",
            "quake3://10.0.0.10:27960",
            "quake3://a",
            "quake3://a2",
            "quake3://a10",
            "source://1.1.1.1:1",
        ];
        for (at, a) in sorted.iter().enumerate() {
            for (other, b) in sorted.iter().enumerate() {
                assert_eq!(compare_numbers(a, b), at.cmp(&other), "{a} {b}");
            }
        }
    }

    #[test]
    fn servers_are_sorted_by_numbers_and_then_by_url() {
        let server = |url: &str, class, players, rank, hostname: &str| {
            let hostname = hostname.to_owned();
            let url = url.to_owned();
            let public = PublicServer { url, class, players, rank, hostname, online: true, ..Default::default() };
            ServerSummary { public, greylist_reason: None }
        };
        let mut servers = vec![
            server("q://b:1", 2, 9, None, ""),
            server("q://a:10", 1, 100, Some(20), "b"),
            server("q://a:9", 2, 20, Some(3), "A"),
        ];
        for (order, want) in [
            (ListOrder::Url, ["q://a:9", "q://a:10", "q://b:1"]),
            (ListOrder::Class, ["q://a:10", "q://a:9", "q://b:1"]),
            (ListOrder::Players, ["q://a:10", "q://a:9", "q://b:1"]),
            (ListOrder::Rank, ["q://a:9", "q://a:10", "q://b:1"]),
            (ListOrder::Name, ["q://a:9", "q://a:10", "q://b:1"]),
        ] {
            sort(&mut servers, order);
            assert_eq!(servers.iter().map(|server| server.public.url.as_str()).collect::<Vec<_>>(), want, "{order:?}");
        }
    }
}
