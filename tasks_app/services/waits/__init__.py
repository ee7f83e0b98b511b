"""Waits of running jobs: begun, ended by what was waited for or by their deadline, and looked after.

A wait is a row of ``job_steps``. Whoever ends it does so by compare and set, and wakes the job after that is committed;
whoever parks a job looks again after that is committed. So one of the two sees the other, and a process that dies in
between leaves a row whose ``check_at`` brings a sweep.
"""
