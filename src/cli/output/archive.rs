//! Text output of `clqd archive`.

use std::io::{self, Write};

use crate::api::ResendRow;
use crate::cli::output::format::{group_digits, sanitize};

pub fn print_resend(out: &mut impl Write, resend: &ResendRow) -> io::Result<()> {
    let noun = if resend.server_weeks == 1 { "week of a server is" } else { "weeks of servers are" };
    let what = if resend.everything { "everything is written again, also names; " } else { "" };
    let weeks = match &resend.weeks[..] {
        [] => "no week".to_owned(),
        [week] => sanitize(week),
        [first, .., last] => sanitize(&format!("{first} to {last}")),
    };
    writeln!(out, "{what}{} {noun} queued for the archive ({weeks})", group_digits(resend.server_weeks))
}
