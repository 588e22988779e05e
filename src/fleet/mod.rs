//! Simulated game servers that speak the real protocols.
