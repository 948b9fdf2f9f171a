"""What is asserted, a file for each subject; `kt_conformance.catalogue` has their order."""
