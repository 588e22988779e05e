//! Moments at which the memory of the machine is slow.
//!
//! The host of a virtual machine may take its pages away, for example to see which of them are used. Then the first touch
//! of each page costs some 30 us, and everything on the machine stands still for a moment. A process of its own with 64 MB
//! in small pages notices that: 2,000 reads of it take 60 ms of CPU time instead of 0.15 ms.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;

use crate::measure;

/// Set in the process that watches.
const VARIABLE: &str = "CLQD_MEMORY_WATCH";

const BYTES: usize = 64 << 20;
const READS: usize = 2_000;
const PAUSE: Duration = Duration::from_millis(10);

/// CPU time of the reads from which on the memory is slow.
const SLOW: Duration = Duration::from_millis(5);

/// What is due so long before and after a slow moment is delayed by it.
const BEFORE: Duration = Duration::from_millis(500);
const AFTER: Duration = Duration::from_secs(2);

/// Watches until it is stopped.
pub struct MemoryWatch(Child);

/// Slow moments, Unix time in ms.
pub struct SlowMoments(Vec<u64>);

impl MemoryWatch {
    /// Call it at the start of `main`: in the process that watches it does not return.
    pub fn watch_if_asked() -> anyhow::Result<()> {
        if std::env::var_os(VARIABLE).is_none() {
            return Ok(());
        }
        let memory = vec![1_u8; BYTES];
        let (mut random, mut sum) = (88_172_645_463_325_252_u64, 0_u64);
        loop {
            let (at, before) = (SystemTime::now(), measure::on_core()?);
            for _ in 0..READS {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                sum = sum.wrapping_add(memory[random as usize % BYTES].into());
            }
            if measure::on_core()? - before > SLOW {
                println!("{}", unix_ms(at));
            }
            std::hint::black_box(sum);
            std::thread::sleep(PAUSE);
        }
    }

    pub fn start() -> anyhow::Result<MemoryWatch> {
        let mut command = Command::new(std::env::current_exe()?);
        // A touch of a large page brings 512 small ones.
        command.env(VARIABLE, "1").env("MIMALLOC_ALLOW_THP", "0").stdout(Stdio::piped());
        Ok(MemoryWatch(command.spawn()?))
    }

    pub fn stop(mut self) -> anyhow::Result<SlowMoments> {
        self.0.kill()?;
        let mut text = String::new();
        self.0.stdout.take().context("a pipe")?.read_to_string(&mut text)?;
        self.0.wait()?;
        Ok(SlowMoments(text.lines().map(str::parse).collect::<Result<_, _>>()?))
    }
}

impl SlowMoments {
    /// Whether what is due then is delayed by slow memory.
    pub fn delay(&self, due: SystemTime) -> bool {
        let due = unix_ms(due);
        self.0.iter().any(|at| (at - BEFORE.as_millis() as u64..at + AFTER.as_millis() as u64).contains(&due))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn unix_ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
