"""What may stand in the way of agents on this machine: looked at, judged, told. Never changes anything, takes no lock.

`state` looks at the state directory, `machine` at the system, `processes` at what runs, `network` at ports;
`examination` puts them in order. Each check has a look, which reads, and a judgement, which is pure.
"""
