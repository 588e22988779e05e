//! Presence, rounds, CLQ1, CLQ2, ELO: what successive snapshots reveal (RULES sections 3 to 7).
