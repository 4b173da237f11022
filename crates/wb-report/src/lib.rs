//! Tables, charts and pages: draws finished results, computes none
