//! The engine: events in, probes and commits out.
