"""What packages that are parts of the program itself use of the kernel: reducers, companions, commands.

A module for each subject, with ordinary imports from the rooms below.  Endpoints, data sets, metrics and other plugins need
``aiperf.sdk`` alone.
"""
