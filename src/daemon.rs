//! The daemon: wiring, signals, the order of starting and stopping.
