"""Settings for this machine: its pieces measured one by one, a model of where time goes, and the choice by it."""
