//! What the system did meanwhile.
