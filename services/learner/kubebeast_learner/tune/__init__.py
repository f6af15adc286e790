"""Settings for this machine: measurements of its pieces, a model of the time they take, and the choice by it."""
