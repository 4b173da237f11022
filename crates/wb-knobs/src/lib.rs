//! The settings and conditions that make measurements noisy
