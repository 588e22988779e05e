//! Boards: order and positions (RULES section 8).
