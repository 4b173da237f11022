//! Every test that can be run: built in, declarative and external
