"""Books over HTTP: an interface for programs and pages for a browser. Started by ``strikeout serve``.

One process serves every book of a folder. Routes check the person, the head of the ledger and the limits; the verbs of
``Book`` do everything else, the long ones in worker processes.
"""
