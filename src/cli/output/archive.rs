//! Text output of `clqd archive`.

use std::io::{self, Write};

use crate::api::requests::{ArchiveDifference, DifferenceKind, ResendRow, VerifyRow};
use crate::cli::output::format::{group_digits, sanitize};

pub fn print_resend(out: &mut impl Write, resend: &ResendRow) -> io::Result<()> {
    let noun = if resend.server_weeks == 1 { "week of a server is" } else { "weeks of servers are" };
    let what = if resend.everything { "everything is written again, also names; " } else { "" };
    let weeks = weeks_text(&resend.weeks);
    writeln!(out, "{what}{} {noun} queued for the archive ({weeks})", group_digits(resend.server_weeks))
}

pub fn print_difference(out: &mut impl Write, difference: &ArchiveDifference) -> io::Result<()> {
    let place = [&difference.week, &difference.server].into_iter().flatten().map(String::as_str);
    let row = [&difference.table, &difference.key].into_iter().map(String::as_str).filter(|text| !text.is_empty());
    let place: Vec<&str> = place.chain(row).collect();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let what = match difference.difference {
        DifferenceKind::Missing => "missing".to_owned(),
        DifferenceKind::Surplus => "surplus".to_owned(),
        DifferenceKind::Value => {
            let (column, expected, found) =
                (text(&difference.column), text(&difference.expected), text(&difference.found));
            format!("{column} is {found}, expected {expected}")
        }
    };
    writeln!(out, "{}: {}", sanitize(&place.join(" ")), sanitize(&what))
}

pub fn print_verified(out: &mut impl Write, verified: &VerifyRow) -> io::Result<()> {
    let count = |number: u64, one: &str, more: &str| {
        format!("{} {}", group_digits(number), if number == 1 { one } else { more })
    };
    writeln!(
        out,
        "{} compared ({}): {}",
        count(verified.rows, "row", "rows"),
        weeks_text(&verified.weeks),
        count(verified.differences, "difference", "differences"),
    )?;
    if verified.listed < verified.differences {
        writeln!(out, "only the first {} are listed", group_digits(verified.listed))?;
    }
    if verified.server_weeks_skipped > 0 {
        let skipped = count(verified.server_weeks_skipped, "week of a server", "weeks of servers");
        writeln!(out, "{skipped} not compared: changing, or waiting in the outbox")?;
    }
    if verified.objects_skipped > 0 {
        let skipped = count(verified.objects_skipped, "name, server or session", "names, servers and sessions");
        writeln!(out, "{skipped} not compared: changing, or waiting in the outbox")?;
    }
    if verified.boards_skipped > 0 {
        let skipped = count(verified.boards_skipped, "week or window", "weeks and windows");
        writeln!(out, "published boards of {skipped} not compared: waiting in the outbox")?;
    }
    match &verified.resend_weeks {
        _ if verified.resend_everything => writeln!(out, "repair: clqd archive resend"),
        Some(weeks) if weeks.first == weeks.last => {
            writeln!(out, "repair: clqd archive resend --weeks {}", sanitize(&weeks.first))
        }
        Some(weeks) => {
            writeln!(out, "repair: clqd archive resend --weeks {}..{}", sanitize(&weeks.first), sanitize(&weeks.last))
        }
        None => Ok(()),
    }
}

fn weeks_text(weeks: &[String]) -> String {
    match weeks {
        [] => "no week".to_owned(),
        [week] => sanitize(week),
        [first, .., last] => sanitize(&format!("{first} to {last}")),
    }
}
