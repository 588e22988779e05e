//! Text output of corrections.

use std::io::{self, Write};

use chrono::{DateTime, Utc};

use crate::cli::output::format::{date, duration, group_digits, sanitize};
use crate::view::{CaptureDeletion, Correction, ForgottenName};

pub fn print(out: &mut impl Write, correction: &Correction, now_ms: i64) -> io::Result<()> {
    match correction {
        Correction::Merged { player_key, into_key, rows } => {
            writeln!(out, "player {player_key} is player {into_key} from now on; {} merged", row_count_text(*rows))
        }
        Correction::Forgotten { player_key, rows, hashes, captures } => {
            writeln!(out, "player {player_key} is forgotten; {} deleted", row_count_text(*rows))?;
            hashes.iter().try_for_each(|hash| writeln!(out, "{hash}"))?;
            match captures {
                None => Ok(()),
                Some(CaptureDeletion::Deleted { files }) => writeln!(out, "capture files deleted: {files}"),
                Some(CaptureDeletion::Failed { error }) => writeln!(
                    out,
                    "capture files cannot be deleted ({}) and may contain the name; delete the files of capture.dir",
                    sanitize(error)
                ),
            }
        }
        Correction::Allowed { hash } => writeln!(out, "{hash}  may be known again"),
        Correction::WeekReopened { week, already_open, in_progress } => {
            let state = match (already_open, in_progress) {
                (_, true) => "is being reopened",
                (true, false) => "is open already",
                (false, false) if has_ended(week, now_ms) => "is reopened; it has ended, so it is closed again soon",
                (false, false) => "is reopened; it is closed again when it is over",
            };
            writeln!(out, "week {} {state}", sanitize(week))
        }
        Correction::Recomputing { windows, kept } => {
            let of_part = |window: &String| {
                writeln!(out, "window {} is kept as it is: it began before the log", sanitize(window))
            };
            kept.iter().try_for_each(of_part)?;
            writeln!(out, "recomputing {}; the log of the daemon says when it is done", sanitize(&windows.join(", ")))
        }
        Correction::TimeReset { previous_ms, now_ms, servers, reopened, uncredited_week } => {
            let back = duration((previous_ms - now_ms).unsigned_abs());
            let noun = if *servers == 1 { "server" } else { "servers" };
            writeln!(
                out,
                "recorded time is set back by {back}; {} {noun} had been scanned later",
                group_digits(*servers)
            )?;
            reopened.iter().try_for_each(|week| {
                writeln!(out, "week {} is reopened; it was closed and is not over", sanitize(week))
            })?;
            uncredited_week.iter().try_for_each(|week| {
                writeln!(
                    out,
                    "the rows of week {} are not in the state any more: nothing is credited to it; see `clqd replay`",
                    sanitize(week)
                )
            })
        }
        Correction::TagDropped { tag, servers } => {
            let noun = if *servers == 1 { "server" } else { "servers" };
            writeln!(
                out,
                "tag {} is removed from {} {noun}, with its boards and ratings",
                sanitize(tag),
                group_digits(*servers)
            )
        }
    }
}

/// Whether a week has ended in all time zones.
fn has_ended(week: &str, now_ms: i64) -> bool {
    const LAST_ZONE_MS: i64 = 12 * 3_600_000;
    let running = DateTime::<Utc>::from_timestamp_millis(now_ms - LAST_ZONE_MS);
    running.is_some_and(|time| week < &*time.format("%G-W%V").to_string())
}

pub fn print_forgotten(out: &mut impl Write, name: &ForgottenName) -> io::Result<()> {
    writeln!(out, "{}  {}", date(name.forgotten_ms), name.hash)
}

fn row_count_text(rows: u64) -> String {
    let noun = if rows == 1 { "row" } else { "rows" };
    format!("{} {noun} of servers in all windows", group_digits(rows))
}
