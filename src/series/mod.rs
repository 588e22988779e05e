//! Log code, slots, medians (RULES section 10).
