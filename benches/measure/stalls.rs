//! Moments in which the whole machine stands still. A virtual machine whose host takes memory back and gives it again reads its own
//! memory a hundred times slower meanwhile, 0.1 to 0.3 s long, whatever runs on it.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Memory that is read, one byte of each page.
const BYTES: usize = 64 << 20;
const PAGE: usize = 4_096;

const INTERVAL: Duration = Duration::from_millis(50);

/// A reading that takes longer is a stall: usual is 0.1 ms, some ms if other threads have the cores.
const READING_MAX: Duration = Duration::from_millis(50);

/// What was due so long before or after a stall was noticed may have waited for it, or for those that had.
const BEFORE: Duration = Duration::from_millis(400);
const AFTER: Duration = Duration::from_millis(500);

/// Looks for stalls on a thread of its own, which uses about a hundredth of a core.
pub struct StallWatch {
    ends: &'static AtomicBool,
    thread: JoinHandle<Vec<(Instant, Duration)>>,
}

/// When the machine stood still.
pub struct Stalls(Vec<(Instant, Duration)>);

impl StallWatch {
    pub fn start() -> StallWatch {
        let ends: &AtomicBool = Box::leak(Box::default());
        let thread = std::thread::spawn(move || {
            let memory = vec![1_u8; BYTES];
            let mut readings = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                let before = Instant::now();
                // The compiler must not know what is in the memory.
                black_box(black_box(&memory).iter().step_by(PAGE).map(|byte| u64::from(*byte)).sum::<u64>());
                readings.push((Instant::now(), before.elapsed()));
                std::thread::sleep(INTERVAL);
            }
            readings
        });
        StallWatch { ends, thread }
    }

    pub fn stop(self) -> Stalls {
        self.ends.store(true, Ordering::Relaxed);
        let mut readings = self.thread.join().expect("reading memory does not panic");
        readings.retain(|(_, time)| *time > READING_MAX);
        Stalls(readings)
    }
}

impl Stalls {
    pub fn touch(&self, due: Instant) -> bool {
        self.0.iter().any(|(at, _)| *at < due + BEFORE && due < *at + AFTER)
    }

    pub fn print(&self) {
        let longest = self.0.iter().map(|(_, time)| time.as_millis()).max().unwrap_or(0);
        println!("stalls       {} of the whole machine, at most {longest} ms", self.0.len());
    }
}
