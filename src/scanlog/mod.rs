//! The scan log: reading, writing, rotating (RULES section 13).
