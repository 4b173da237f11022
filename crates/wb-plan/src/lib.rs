//! Plan files, test specifications, expansion into cells, selection
