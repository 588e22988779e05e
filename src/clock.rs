//! The only place that asks what time it is.
