//! From raw artefacts to values, gates, summaries and answers
