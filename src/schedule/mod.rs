//! Classes, due times, what is in flight (RULES section 9).
