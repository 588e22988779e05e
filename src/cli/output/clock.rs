//! Describes the daemon's clock in one line.
//!
//! *Recorded time* is the time that the daemon gives to scans. It follows the system clock, but
//! runs backwards only if an admin resets it. No week is closed until the clock is trusted.

use crate::cli::output::format::{duration, relative_time, sanitize};
use crate::view::{ClockStatus, ClockTrust};

pub(super) fn describe_clock(clock: &ClockStatus) -> String {
    let span = |ms: i64| duration(ms.unsigned_abs());
    let mut text = match clock.trust {
        ClockTrust::Synchronised => "synchronised".to_owned(),
        ClockTrust::Stable => "not synchronised, but stable".to_owned(),
        ClockTrust::Accepted => "accepted by an admin".to_owned(),
        ClockTrust::Untrusted => {
            let reason = match clock.synchronised {
                Some(true) => "",
                Some(false) => "NOT SYNCHRONISED: ",
                None => "NOT KNOWN TO BE SYNCHRONISED: ",
            };
            let remaining = clock.trusted_in_ms.map_or(String::new(), |ms| format!(" for another {}", span(ms)));
            format!("{reason}no week is closed{remaining}; to trust it now: `clqd clock accept`")
        }
    };
    if clock.pending_jump_ms > 0 {
        text +=
            &format!("; the system clock jumped {} ahead; the jump is not applied yet", span(clock.pending_jump_ms));
    }
    if clock.ahead_ms >= 1_000 {
        text += &format!(
            "; recorded time is {} AHEAD of the system clock and runs a tenth slower; if the system clock is \
             right: `clqd clock reset`",
            span(clock.ahead_ms)
        );
    }
    if let (Some(by_ms), at) = (clock.last_jump_ms, clock.last_jump_at_ms) {
        let direction = if by_ms > 0 { "forward" } else { "back" };
        text += &format!("; it last jumped {direction} by {}, {}", span(by_ms), relative_time(at, clock.now_ms));
    }
    if let Some(week) = &clock.week_pending_close {
        text += &format!("; week {} has ended and is not closed yet", sanitize(week));
    }
    text
}
