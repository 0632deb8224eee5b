"""A program that uses Gluon writes accesses to shared memory itself: consan then takes fewer findings
for Triton's own (libconsan/check/profile.def)."""
import os

os.environ["CONSAN_GLUON"] = "1"
