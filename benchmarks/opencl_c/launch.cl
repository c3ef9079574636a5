// Covers: family launch; nothing but an early return.
// kernel: {"name": "launch", "generator": "launch", "tags": ["lsize_0:256"],
//   "global": "groups * 256", "local": 256, "small": {"groups": 5}, "sizes": [{"groups": 262144}, {"groups": 1048576}]}
__kernel void launch(const int groups)
{
    if (get_group_id(0) >= groups)
        return;
}
