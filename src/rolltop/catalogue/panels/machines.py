"""What the machines and the telemetry itself do."""

from __future__ import annotations

from rolltop.catalogue.panel import ANY, GPU, NODE, PROCESS, Kind, Panel, PanelQuery, Section
from rolltop.catalogue.panels.parts import slope

_IDLE = 'mode="idle"'

MACHINES: tuple[Panel, ...] = (
    Panel(
        key="process_cpu",
        title="CPU, by group of processes",
        unit="cores",
        section=Section.MACHINES,
        source=PROCESS,
        kind=Kind.STACK,
        colour_by="groupname",
        queries=(
            PanelQuery(
                f"sum by (groupname) ({slope('namedprocess_namegroup_cpu_seconds_total')})",
                "{groupname}",
            ),
        ),
        series=("namedprocess_namegroup_cpu_seconds_total",),
        empty_reason="the process exporter found no process of the run",
        description="Cores that the processes of a service use.",
    ),
    Panel(
        key="process_memory",
        title="Memory, by group of processes",
        unit="GiB, resident",
        section=Section.MACHINES,
        source=PROCESS,
        colour_by="groupname",
        queries=(
            PanelQuery(
                "sum by (groupname)"
                ' (namedprocess_namegroup_memory_bytes{memtype="resident",$run}) / 2^30',
                "{groupname}",
            ),
        ),
        series=("namedprocess_namegroup_memory_bytes",),
        empty_reason="the process exporter found no process of the run",
        description="Memory that the processes of a service hold; shared pages count in each.",
    ),
    Panel(
        key="node_cpu",
        title="CPU of the nodes",
        unit="share of all cores",
        section=Section.MACHINES,
        source=NODE,
        colour_by="node",
        queries=(
            PanelQuery(
                f"1 - avg by (node) ({slope('node_cpu_seconds_total', _IDLE)})",
                "{node}",
            ),
        ),
        series=("node_cpu_seconds_total",),
        empty_reason="the node exporter does not report CPU",
        y_max=1.05,
        description="All processes of a node, also those of others.",
    ),
    Panel(
        key="node_memory",
        title="Memory of the nodes",
        unit="share in use",
        section=Section.MACHINES,
        source=NODE,
        colour_by="node",
        queries=(
            PanelQuery(
                "1 - sum by (node) (node_memory_MemAvailable_bytes{$run})"
                " / sum by (node) (node_memory_MemTotal_bytes{$run})",
                "{node}",
            ),
        ),
        series=("node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"),
        empty_reason="the node exporter does not report memory",
        y_max=1.05,
        description="Memory of a node that is not available any more.",
    ),
    Panel(
        key="gpu_utilisation",
        title="GPU utilisation",
        unit="%",
        section=Section.MACHINES,
        source=GPU,
        colour_by="gpu",
        queries=(
            PanelQuery(
                "avg by (node, gpu) (avg_over_time(DCGM_FI_DEV_GPU_UTIL{$run}[$window]))",
                "{node} GPU {gpu}",
            ),
        ),
        series=("DCGM_FI_DEV_GPU_UTIL",),
        empty_reason="the GPU exporter does not report utilisation",
        y_max=105.0,
        description="Share of time that a GPU ran anything.",
    ),
    Panel(
        key="gpu_memory",
        title="GPU memory",
        unit="GiB in use",
        section=Section.MACHINES,
        source=GPU,
        colour_by="gpu",
        queries=(
            PanelQuery("max by (node, gpu) (DCGM_FI_DEV_FB_USED{$run}) / 1024", "{node} GPU {gpu}"),
        ),
        series=("DCGM_FI_DEV_FB_USED",),
        empty_reason="the GPU exporter does not report memory",
        description="More than 90 % of what a GPU has is too close to its end.",
    ),
)

TELEMETRY: tuple[Panel, ...] = (
    Panel(
        key="targets_up",
        title="Targets that answer",
        unit="targets",
        section=Section.TELEMETRY,
        source=ANY,
        colour_by="",
        queries=(PanelQuery("sum by (job) (up{$run})", "{job}"),),
        series=("up",),
        empty_reason="Prometheus scraped nothing",
        description="Workers and exporters that answered the last scrape.",
    ),
    Panel(
        key="scrape_duration",
        title="Duration of a scrape, longest",
        unit="s",
        section=Section.TELEMETRY,
        source=ANY,
        colour_by="",
        queries=(
            PanelQuery(
                "max by (job) (max_over_time(scrape_duration_seconds{$run}[$window]))", "{job}"
            ),
        ),
        series=("scrape_duration_seconds",),
        empty_reason="Prometheus scraped nothing",
        description="A page that takes long to answer is a busy worker.",
    ),
    Panel(
        key="samples",
        title="Samples of a scrape, most",
        unit="samples",
        section=Section.TELEMETRY,
        source=ANY,
        colour_by="",
        queries=(PanelQuery("max by (job) (scrape_samples_scraped{$run})", "{job}"),),
        series=("scrape_samples_scraped",),
        empty_reason="Prometheus scraped nothing",
        description="Series of the largest page; more than 550 from a worker are too many.",
    ),
)
